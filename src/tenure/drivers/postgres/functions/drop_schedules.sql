-- Removes schedules.
-- In: ids. Out: for each whether it was there; of an id that comes twice, the first time.
CREATE OR REPLACE FUNCTION {schema}.drop_schedules(p_ids text[])
RETURNS boolean[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_dropped text[];
BEGIN
    PERFORM FROM {schema}.schedules WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE;
    WITH dropped AS (
        DELETE FROM {schema}.schedules WHERE id = ANY (p_ids) RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO v_dropped FROM dropped;
    RETURN (
        SELECT array_agg(
            n.id = ANY (v_dropped) AND array_position(p_ids, n.id) = n.place ORDER BY n.place
        )
        FROM unnest(p_ids) WITH ORDINALITY AS n (id, place)
    );
END $$;
