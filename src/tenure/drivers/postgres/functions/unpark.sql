-- Lets the best lane of a queue that is parked on a key stand in the order of claims.
-- In: the key, which has room; the queue, now; this transaction has the right of hold_limits.sql.
-- Out: the lane, as it was; NULLs where there is none.
-- Lanes of which another key is full are parked on that instead. Of very many it looks at some, and
-- then lets the next one stand there unseen: a claim is bounded in what it looks at.
-- Goes on up to the first whose head is due: a clock that was set back may have left others.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.unpark(p_key text, p_queue text, p_now timestamptz)
RETURNS {schema}.lanes LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_lane {schema}.lanes;
    v_full record;
    v_looks integer := 0;
    v_stands boolean;
BEGIN
    LOOP
        SELECT * INTO v_lane FROM {schema}.lanes AS l
        WHERE l.parked = p_key AND l.queue = p_queue
        ORDER BY l.parked, l.queue, l.priority DESC, l.head_at, l.head
        LIMIT 1;
        EXIT WHEN NOT FOUND;
        v_looks := v_looks + 1;
        IF v_looks <= 50 THEN
            SELECT * INTO v_full FROM {schema}.full_key(v_lane.limits, p_now);
        ELSE
            v_full := NULL;
        END IF;
        UPDATE {schema}.lanes SET parked = v_full.key
        WHERE queue = v_lane.queue AND priority = v_lane.priority AND lane = v_lane.lane;
        IF v_full.key IS NOT NULL THEN
            IF isfinite(v_full.free) THEN
                PERFORM {schema}.expect(v_full.key, v_full.free);
            END IF;
            CONTINUE;
        END IF;
        UPDATE {schema}.jobs SET kept = false WHERE seq = (
            SELECT j.seq FROM {schema}.jobs AS j
            WHERE j.seq = v_lane.head AND j.state = 0 AND j.lane = v_lane.lane AND j.kept
                AND j.queue = v_lane.queue AND j.priority = v_lane.priority
            FOR UPDATE SKIP LOCKED
        );
        v_stands := FOUND;
        IF NOT v_stands THEN  -- somebody has it, or has done something to it
            PERFORM {schema}.examine(v_lane.queue, v_lane.priority, v_lane.lane, p_now);
        END IF;
        EXIT WHEN v_stands AND v_lane.head_at <= p_now;
    END LOOP;
    RETURN v_lane;
END $$;
