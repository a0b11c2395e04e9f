-- The earliest instant later than now at which a waiting job of an unpaused queue is due.
-- In: queues, now or NULL for the server's. Out: an instant, or NULL.
CREATE OR REPLACE FUNCTION {schema}.next_due(p_queues text[], p_now timestamptz)
RETURNS timestamptz LANGUAGE plpgsql STABLE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_earliest timestamptz;
    v_queue text;
    v_priority integer;
BEGIN
    FOREACH v_queue IN ARRAY p_queues LOOP
        CONTINUE WHEN EXISTS (SELECT FROM {schema}.paused WHERE queue = v_queue);
        v_priority := {schema}.priority_below(v_queue, 2147483647);
        WHILE v_priority IS NOT NULL LOOP
            v_earliest := least(v_earliest, (
                SELECT j.run_at FROM {schema}.jobs AS j
                WHERE j.state = 0 AND j.queue = v_queue AND j.priority = v_priority
                    AND j.run_at > v_now
                ORDER BY j.run_at, j.seq
                LIMIT 1
            ));
            v_priority := {schema}.priority_below(v_queue, v_priority);
        END LOOP;
    END LOOP;
    RETURN v_earliest;
END $$;
