-- A limit was put or dropped: looks at the keys which it may govern and on which lanes are parked.
-- In: its key, the key after which to go on (NULL: from the first), now; this transaction has the
--     right of hold_limits.sql.
-- Leaves a mark where there are more than a claim should look at.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.changed_limit(p_limit text, p_after text, p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_beginning text := left(p_limit, -1);
    v_key text := p_after;
BEGIN
    IF p_after IS NULL THEN
        PERFORM {schema}.freed(p_limit, p_now);
        PERFORM {schema}.freed(v_beginning, p_now);
        v_key := v_beginning;
    END IF;
    IF right(p_limit, 1) <> '*' THEN
        RETURN;
    END IF;
    FOR n IN 1 .. 300 LOOP
        SELECT l.parked INTO v_key FROM {schema}.lanes AS l
        WHERE l.parked > v_key
        ORDER BY l.parked, l.queue, l.priority DESC, l.head_at, l.head
        LIMIT 1;
        EXIT WHEN NOT FOUND OR NOT starts_with(v_key, v_beginning);
        PERFORM {schema}.freed(v_key, p_now);
        IF n = 300 THEN
            INSERT INTO {schema}.marks (queue, key) VALUES (v_key, p_limit);
        END IF;
    END LOOP;
END $$;
