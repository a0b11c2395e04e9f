-- Draws from marks what follows from them, and lets lanes come whose keys' rates allow it by now.
-- In: now; this transaction has the right of hold_limits.sql.
-- Bounded: what is left is for the next claim, and `next_due` says that there is something.
-- Holds are counted before anything is asked of them.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.look_again(p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_marks {schema}.marks[];
    v_mark record;
    v_limits text[];
    v_key text;
BEGIN
    WITH taken AS (
        DELETE FROM {schema}.marks AS m WHERE m.id = ANY (ARRAY(
            SELECT id FROM {schema}.marks ORDER BY id LIMIT 300
        ))
        RETURNING m
    )
    SELECT array_agg(m) INTO v_marks FROM taken;

    UPDATE {schema}.holds AS h SET n = greatest(h.n - ended.n, 0)
    FROM (SELECT key, sum(n)::integer AS n FROM unnest(v_marks) WHERE n IS NOT NULL GROUP BY key) AS ended
    WHERE h.key = ended.key;
    FOR v_mark IN
        SELECT DISTINCT queue, priority, lane FROM unnest(v_marks) WHERE lane IS NOT NULL
    LOOP
        SELECT limits INTO v_limits FROM {schema}.lanes
        WHERE queue = v_mark.queue AND priority = v_mark.priority AND lane = v_mark.lane;
        IF {schema}.examine(v_mark.queue, v_mark.priority, v_mark.lane, p_now) THEN
            PERFORM {schema}.offer(v_limits, v_mark.queue, p_now, NULL, NULL, NULL);
        END IF;
    END LOOP;
    FOR v_key IN SELECT DISTINCT key FROM unnest(v_marks) WHERE n IS NOT NULL LOOP
        PERFORM {schema}.freed(v_key, p_now);
    END LOOP;
    FOR v_mark IN
        SELECT key, queue FROM unnest(v_marks) WHERE key IS NOT NULL AND n IS NULL ORDER BY id
    LOOP
        PERFORM {schema}.changed_limit(v_mark.key, v_mark.queue, p_now);
    END LOOP;
    FOR v_key IN
        SELECT h.key FROM {schema}.holds AS h
        WHERE h.free_at <= p_now OR h.free_at > p_now + interval '2 seconds'
        LIMIT 300
    LOOP
        PERFORM {schema}.freed(v_key, p_now);
    END LOOP;
END $$;
