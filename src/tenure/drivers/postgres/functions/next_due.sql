-- The earliest instant later than now at which a waiting job of an unpaused queue may be claimed: when
-- one is due, or when a rate lets one through (rate_over.sql).
-- In: queues, now or NULL for the server's. Out: an instant, or NULL. It may be too early.
-- Where marks are left, the next claim has to look at what follows from them: that is at once.
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
        IF EXISTS (SELECT FROM {schema}.marks WHERE id > 0) THEN
            RETURN v_now + interval '1 microsecond';
        END IF;
        v_priority := {schema}.priority_below(v_queue, 2147483647);
        WHILE v_priority IS NOT NULL LOOP
            v_earliest := least(v_earliest, (
                SELECT j.run_at FROM {schema}.jobs AS j
                WHERE j.state = 0 AND NOT j.kept AND j.queue = v_queue AND j.priority = v_priority
                    AND j.run_at > v_now
                ORDER BY j.run_at, j.seq
                LIMIT 1
            ));
            v_priority := {schema}.priority_below(v_queue, v_priority);
        END LOOP;
        IF EXISTS (SELECT FROM {schema}.lanes WHERE queue = v_queue) THEN
            v_earliest := least(v_earliest, {schema}.rate_over(v_queue, v_now), (
                SELECT j.run_at FROM {schema}.jobs AS j
                WHERE j.state = 0 AND j.kept AND j.queue = v_queue AND j.run_at > v_now
                ORDER BY j.queue, j.run_at
                LIMIT 1
            ));
        END IF;
    END LOOP;
    RETURN v_earliest;
END $$;
