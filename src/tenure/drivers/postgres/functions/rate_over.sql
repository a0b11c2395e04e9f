-- The earliest instant later than now at which a rate lets a waiting job of a queue through.
-- In: the queue, now. Out: an instant, or NULL. It may be too early.
-- The jobs are those of parked lanes, and those that no claim has looked at since the rate was used up.
-- Bounded: the first thousand keys whose rates will be over; where none of them is of the queue, the
-- last of these is early enough.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.rate_over(p_queue text, p_now timestamptz)
RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_earliest timestamptz;
    v_count integer := 0;
    v_each record;
BEGIN
    FOR v_each IN
        SELECT h.key, h.free_at FROM {schema}.holds AS h WHERE h.free_at > p_now ORDER BY h.free_at
        LIMIT 1000
    LOOP
        v_count := v_count + 1;
        IF v_count = 1000 OR EXISTS (
            SELECT FROM {schema}.lanes WHERE parked = v_each.key AND queue = p_queue
        ) THEN
            v_earliest := v_each.free_at;
            EXIT;
        END IF;
    END LOOP;
    FOR v_each IN
        SELECT (SELECT max({schema}.free_at(k, p_now)) FROM unnest(l.limits) AS k) AS free
        FROM {schema}.lanes AS l
        WHERE l.queue = p_queue AND l.parked IS NULL AND l.head_at <= p_now
        ORDER BY l.queue, l.head_at
        LIMIT 100
    LOOP
        IF v_each.free > p_now AND isfinite(v_each.free) THEN
            v_earliest := least(v_earliest, v_each.free);
        END IF;
    END LOOP;
    RETURN v_earliest;
END $$;
