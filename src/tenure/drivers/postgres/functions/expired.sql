-- Holds whose lease has run out, longest ago first, and after them those that end later than their
-- whole lease from now: the clock was set back since. Changes nothing.
-- In: how many at most, now or NULL for the server's.
-- Out: now in every row, and the hold with its end and length; one row without a hold for none.
CREATE OR REPLACE FUNCTION {schema}.expired(p_limit integer, p_now timestamptz)
RETURNS TABLE (
    now timestamptz, id text, serial bigint, token text, lease_until timestamptz,
    lease double precision
) LANGUAGE plpgsql STABLE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    RETURN QUERY
    SELECT v_now, e.id, e.serial, e.token, e.lease_until, e.lease
    FROM (SELECT) AS one_row
    LEFT JOIN LATERAL (
        SELECT * FROM {schema}.jobs AS j
        WHERE j.state = 2
            AND (j.lease_until <= v_now OR {schema}.ends_ahead(j.lease_until, j.lease, v_now))
        ORDER BY j.lease_until, j.seq
        LIMIT p_limit
    ) AS e ON true;
END $$;
