-- Lets the best lane of a queue that is parked on a key stand in the order of claims.
-- In: the key, the queue, now; this transaction has the right of hold_limits.sql.
-- Out: the lane, as it was; NULLs where there is none.
-- Whether its other keys have room is not asked: a claim does, and is bounded in what it looks at.
-- Goes on up to the first whose head is due: a clock that was set back may have left others.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.unpark(p_key text, p_queue text, p_now timestamptz)
RETURNS {schema}.lanes LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_lane {schema}.lanes;
    v_free boolean;
BEGIN
    LOOP
        SELECT * INTO v_lane FROM {schema}.lanes AS l
        WHERE l.parked = p_key AND l.queue = p_queue
        ORDER BY l.parked, l.queue, l.priority DESC, l.head_at, l.head
        LIMIT 1;
        EXIT WHEN NOT FOUND;
        UPDATE {schema}.lanes SET parked = NULL
        WHERE queue = v_lane.queue AND priority = v_lane.priority AND lane = v_lane.lane;
        UPDATE {schema}.jobs SET kept = false WHERE seq = (
            SELECT j.seq FROM {schema}.jobs AS j
            WHERE j.seq = v_lane.head AND j.state = 0 AND j.lane = v_lane.lane AND j.kept
                AND j.queue = v_lane.queue AND j.priority = v_lane.priority
            FOR UPDATE SKIP LOCKED
        );
        v_free := FOUND;
        IF NOT v_free THEN  -- somebody has it, or has done something to it
            PERFORM {schema}.examine(v_lane.queue, v_lane.priority, v_lane.lane, p_now);
        END IF;
        EXIT WHEN v_free AND v_lane.head_at <= p_now;
    END LOOP;
    RETURN v_lane;
END $$;
