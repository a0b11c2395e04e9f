-- Sees to it that the right job stands for a lane in the order of claims.
-- In: the lane, now; this transaction has the right of hold_limits.sql.
-- Out: whether the job that stood for it does no longer, or not at its place; others may then come
--      before the one that does (offer.sql).
-- A job that somebody else has locked is passed by: a transaction of a user that changes it must not
-- stop those behind it. What becomes of it leaves a mark; if nothing does, it is the first again when
-- the next one goes. Where all are locked, the lane stays as one that is to be looked at (claim.sql).
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.examine(
    p_queue text, p_priority integer, p_lane uuid, p_now timestamptz
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_old {schema}.lanes;
    v_head record;
    v_full record;
    v_stood boolean;
BEGIN
    SELECT * INTO v_old FROM {schema}.lanes
    WHERE queue = p_queue AND priority = p_priority AND lane = p_lane;
    v_stood := FOUND AND v_old.parked IS NULL;

    SELECT j.seq, j.run_at, j.limits, j.kept INTO v_head FROM {schema}.jobs AS j
    WHERE j.state = 0 AND j.queue = p_queue AND j.priority = p_priority AND j.lane = p_lane
    ORDER BY j.run_at, j.seq
    LIMIT 1
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        DELETE FROM {schema}.lanes WHERE queue = p_queue AND priority = p_priority AND lane = p_lane;
        INSERT INTO {schema}.lanes (queue, priority, lane, limits, head, head_at)
        SELECT j.queue, j.priority, j.lane, j.limits, j.seq, j.run_at FROM {schema}.jobs AS j
        WHERE j.state = 0 AND j.queue = p_queue AND j.priority = p_priority AND j.lane = p_lane
        ORDER BY j.run_at, j.seq
        LIMIT 1;
        RETURN v_stood;
    END IF;

    -- One that is not due stands there all the same: its time will come without any mark.
    SELECT * INTO v_full FROM {schema}.full_key(
        CASE WHEN v_head.run_at <= p_now THEN v_head.limits END, p_now
    );
    INSERT INTO {schema}.lanes AS l (queue, priority, lane, limits, head, head_at, parked)
    VALUES (p_queue, p_priority, p_lane, v_head.limits, v_head.seq, v_head.run_at, v_full.key)
    ON CONFLICT (queue, priority, lane) DO UPDATE
    SET head = excluded.head, head_at = excluded.head_at, parked = excluded.parked
    WHERE (l.head, l.head_at, l.parked) IS DISTINCT FROM
        (excluded.head, excluded.head_at, excluded.parked);
    IF v_head.kept IS DISTINCT FROM (v_full.key IS NOT NULL) THEN
        UPDATE {schema}.jobs SET kept = (v_full.key IS NOT NULL) WHERE seq = v_head.seq;
    END IF;
    IF v_old.head <> v_head.seq THEN
        UPDATE {schema}.jobs SET kept = true WHERE seq = (
            SELECT j.seq FROM {schema}.jobs AS j
            WHERE j.seq = v_old.head AND j.state = 0 AND j.queue = p_queue
                AND j.priority = p_priority AND j.lane = p_lane AND NOT j.kept
            FOR UPDATE SKIP LOCKED
        );
    END IF;
    IF isfinite(v_full.free) THEN
        PERFORM {schema}.expect(v_full.key, v_full.free);
    END IF;
    RETURN v_stood AND (
        v_full.key IS NOT NULL OR (v_old.head, v_old.head_at) <> (v_head.seq, v_head.run_at)
    );
END $$;
