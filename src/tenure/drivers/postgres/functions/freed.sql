-- A key may have room by now: lets the best lane of each queue come that is parked on it, now or when
-- its rate allows it.
-- In: the key, now; this transaction has the right of hold_limits.sql.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.freed(p_key text, p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_queue text := '';
    v_free timestamptz := {schema}.free_at(p_key, p_now);
BEGIN
    IF v_free <= p_now THEN
        LOOP
            SELECT l.queue INTO v_queue FROM {schema}.lanes AS l
            WHERE l.parked = p_key AND l.queue > v_queue
            ORDER BY l.parked, l.queue
            LIMIT 1;
            EXIT WHEN NOT FOUND;
            PERFORM {schema}.unpark(p_key, v_queue, p_now);
        END LOOP;
    END IF;
    PERFORM {schema}.expect(p_key, v_free);
END $$;
