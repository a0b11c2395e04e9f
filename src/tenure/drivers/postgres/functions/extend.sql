-- Moves the ends of leases, each where its hold is current.
-- In: the holds, no id twice; the lease; now or NULL for the server's.
-- Out: for each hold 0 kept, 1 lost, 2 kept and asked to cancel.
-- A row that somebody else has locked is skipped and answered as it stands: its hold is about to
-- be settled, and a long transaction of a user that completes its job in it must not stop the
-- keeper.
CREATE OR REPLACE FUNCTION {schema}.extend(
    p_ids text[], p_serials bigint[], p_tokens text[], p_lease double precision, p_now timestamptz
) RETURNS smallint[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_places jsonb := (  -- by id, as in record.sql
        SELECT jsonb_object_agg(n.id, n.place)
        FROM unnest(p_ids) WITH ORDINALITY AS n (id, place)
    );
BEGIN
    UPDATE {schema}.jobs AS j
    SET lease = p_lease, lease_until = v_now + p_lease * interval '1 second'
    WHERE j.seq = ANY (ARRAY(
        SELECT h.seq FROM {schema}.jobs AS h
        WHERE h.id = ANY (p_ids)
            AND h.serial = p_serials[(v_places -> h.id)::integer]
            AND h.token = p_tokens[(v_places -> h.id)::integer]
        FOR UPDATE SKIP LOCKED
    ));
    RETURN (
        SELECT array_agg(
            CASE
                WHEN (j.serial, j.token) = (n.serial, n.token)
                    THEN CASE WHEN j.cancel_requested THEN 2 ELSE 0 END
                ELSE 1
            END::smallint ORDER BY n.place
        )
        FROM unnest(p_ids, p_serials, p_tokens) WITH ORDINALITY AS n (id, serial, token, place)
        LEFT JOIN LATERAL (SELECT * FROM {schema}.jobs WHERE id = n.id OFFSET 0) AS j ON true
    );
END $$;
