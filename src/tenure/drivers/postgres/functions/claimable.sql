-- Whether a claim of these queues would find a job. What a waiter polls without notifications.
-- In: queues. Out: true or false.
CREATE OR REPLACE FUNCTION {schema}.claimable(p_queues text[])
RETURNS boolean LANGUAGE plpgsql STABLE {planning} AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_queue text;
    v_priority integer;
BEGIN
    -- What limits have let go, or will have when a claim has looked.
    IF EXISTS (SELECT FROM {schema}.marks WHERE id > 0)
        OR EXISTS (SELECT FROM {schema}.holds WHERE free_at <= v_now)
    THEN
        RETURN true;
    END IF;
    FOREACH v_queue IN ARRAY p_queues LOOP
        CONTINUE WHEN EXISTS (SELECT FROM {schema}.paused WHERE queue = v_queue);
        IF EXISTS (
            SELECT FROM {schema}.lanes
            WHERE queue = v_queue AND parked IS NULL AND head_at <= v_now
        ) THEN
            RETURN true;
        END IF;
        v_priority := {schema}.priority_below(v_queue, 2147483647);
        WHILE v_priority IS NOT NULL LOOP
            IF EXISTS (
                SELECT FROM {schema}.jobs AS j
                WHERE j.state = 0 AND NOT j.kept AND j.queue = v_queue AND j.priority = v_priority
                    AND j.run_at <= v_now
            ) THEN
                RETURN true;
            END IF;
            v_priority := {schema}.priority_below(v_queue, v_priority);
        END LOOP;
    END LOOP;
    RETURN false;
END $$;
