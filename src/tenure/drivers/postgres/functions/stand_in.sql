-- Looks at the lanes of a queue whose heads are due and stand in the order of claims, but were not met.
-- In: the queue, now; this transaction has the right of hold_limits.sql.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.stand_in(p_queue text, p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_lane {schema}.lanes;
BEGIN
    FOR v_lane IN
        SELECT * FROM {schema}.lanes
        WHERE queue = p_queue AND parked IS NULL AND head_at <= p_now
        ORDER BY queue, head_at
        LIMIT 100
    LOOP
        IF {schema}.examine(p_queue, v_lane.priority, v_lane.lane, p_now) THEN
            PERFORM {schema}.offer(v_lane.limits, p_queue, p_now, NULL, NULL, NULL);
        END IF;
    END LOOP;
END $$;
