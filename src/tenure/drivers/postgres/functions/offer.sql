-- Lets lanes come that wait for keys of which one may be had: the best of a queue for each key.
-- In: keys, the queue, now; a place in the order of claims, or NULLs; this transaction has the right
--     of hold_limits.sql.
-- Out: whether one has come that stands before that place.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.offer(
    p_limits text[], p_queue text, p_now timestamptz, p_priority integer, p_at timestamptz,
    p_seq bigint
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_key text;
    v_free timestamptz;
    v_lane {schema}.lanes;
    v_before boolean := false;
BEGIN
    FOREACH v_key IN ARRAY coalesce(p_limits, '{}') LOOP
        v_free := {schema}.free_at(v_key, p_now);
        IF isfinite(v_free) THEN
            PERFORM {schema}.expect(v_key, v_free);
        ELSIF v_free < p_now THEN
            v_lane := {schema}.unpark(v_key, p_queue, p_now);
            IF v_lane.priority > p_priority OR (
                v_lane.priority = p_priority AND (v_lane.head_at, v_lane.head) < (p_at, p_seq)
            ) THEN
                v_before := true;
            END IF;
        END IF;
    END LOOP;
    RETURN v_before;
END $$;
