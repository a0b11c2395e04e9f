-- How many waiting jobs of a queue are due after one instant and up to another.
-- In: queue, the instants, where counting stops. Out: one number.
-- Priority by priority, so that only the jobs in question are read.
CREATE OR REPLACE FUNCTION {schema}.counted(
    p_queue text, p_after timestamptz, p_until timestamptz, p_bound integer
) RETURNS bigint LANGUAGE plpgsql STABLE {planning} AS $$
DECLARE
    v_found bigint := (  -- those that are kept back
        SELECT count(*) FROM (
            SELECT FROM {schema}.jobs AS j
            WHERE j.state = 0 AND j.kept AND j.queue = p_queue
                AND j.run_at > p_after AND j.run_at <= p_until
            LIMIT p_bound
        ) AS bounded
    );
    v_priority integer := {schema}.priority_below(p_queue, 2147483647);
BEGIN
    WHILE v_priority IS NOT NULL AND v_found < p_bound LOOP
        v_found := v_found + (
            SELECT count(*) FROM (
                SELECT FROM {schema}.jobs AS j
                WHERE j.state = 0 AND NOT j.kept AND j.queue = p_queue AND j.priority = v_priority
                    AND j.run_at > p_after AND j.run_at <= p_until
                LIMIT p_bound - v_found
            ) AS bounded
        );
        v_priority := {schema}.priority_below(p_queue, v_priority);
    END LOOP;
    RETURN v_found;
END $$;
