-- Drops claims that no longer count, and counts the holds of keys anew.
-- In: now.
-- The counts are exact unless other hands have changed the record of a running job, and then they
-- would hold others for ever (I12). Marks that are left are part of them; all is one look, while no
-- claim can change it. Who does not get the right leaves it to the next one.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.mend_holds(p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_wrong record;
BEGIN
    IF NOT pg_try_advisory_xact_lock('{schema}.lanes'::regclass::oid::bigint) THEN
        RETURN;
    END IF;
    DELETE FROM {schema}.claims WHERE (key, at) IN (
        SELECT key, at FROM {schema}.claims WHERE at <= p_now - interval '1 second' LIMIT 10000
    );
    FOR v_wrong IN
        SELECT counted.key, sum(counted.n)::integer AS difference
        FROM (
            SELECT k AS key, 1 AS n
            FROM {schema}.jobs AS j CROSS JOIN LATERAL unnest(j.limits) AS k
            WHERE j.state = 2 AND j.lane IS NOT NULL AND k IS NOT NULL
            UNION ALL SELECT h.key, -h.n FROM {schema}.holds AS h
            UNION ALL SELECT m.key, m.n FROM {schema}.marks AS m WHERE m.n IS NOT NULL
        ) AS counted
        GROUP BY counted.key
        HAVING sum(counted.n) <> 0
    LOOP
        INSERT INTO {schema}.holds AS h (key, n) VALUES (v_wrong.key, greatest(v_wrong.difference, 0))
        ON CONFLICT (key) DO UPDATE SET n = greatest(h.n + v_wrong.difference, 0);
        PERFORM {schema}.freed(v_wrong.key, p_now);
    END LOOP;
END $$;
