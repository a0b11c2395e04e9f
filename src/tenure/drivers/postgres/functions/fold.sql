-- Folds differences into the totals. Called now and then by whoever writes, looks or prunes.
-- In: how many at most. Out: how many were folded; 0 when another is folding.
-- Only the one that gets the lock folds, so that nobody ever waits for a row of the totals.
CREATE OR REPLACE FUNCTION {schema}.fold(p_limit integer)
RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_folded integer;
BEGIN
    IF NOT pg_catalog.pg_try_advisory_xact_lock('{schema}.totals'::regclass::oid::bigint) THEN
        RETURN 0;
    END IF;
    WITH taken AS (
        DELETE FROM {schema}.differences
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM {schema}.differences LIMIT p_limit))
        RETURNING queue, state, n, bytes
    ), folded AS (
        INSERT INTO {schema}.totals AS t (queue, state, n, bytes)
        SELECT queue, state, sum(n), sum(bytes) FROM taken GROUP BY queue, state
        HAVING sum(n) <> 0 OR sum(bytes) <> 0
        ON CONFLICT (queue, state)
            DO UPDATE SET n = t.n + excluded.n, bytes = t.bytes + excluded.bytes
    )
    SELECT count(*) INTO v_folded FROM taken;
    DELETE FROM {schema}.totals WHERE n = 0 AND bytes = 0;
    RETURN v_folded;
END $$;
