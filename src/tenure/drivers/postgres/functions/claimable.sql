-- Whether a claim of these queues would find a job. What a waiter polls without notifications.
-- In: queues. Out: true or false.
CREATE OR REPLACE FUNCTION {schema}.claimable(p_queues text[])
RETURNS boolean LANGUAGE plpgsql STABLE {planning} AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_queue text;
    v_priority integer;
BEGIN
    FOREACH v_queue IN ARRAY p_queues LOOP
        CONTINUE WHEN EXISTS (SELECT FROM {schema}.paused WHERE queue = v_queue);
        v_priority := {schema}.priority_below(v_queue, 2147483647);
        WHILE v_priority IS NOT NULL LOOP
            IF EXISTS (
                SELECT FROM {schema}.jobs AS j
                WHERE j.state = 0 AND j.queue = v_queue AND j.priority = v_priority
                    AND j.run_at <= v_now
            ) THEN
                RETURN true;
            END IF;
            v_priority := {schema}.priority_below(v_queue, v_priority);
        END LOOP;
    END LOOP;
    RETURN false;
END $$;
