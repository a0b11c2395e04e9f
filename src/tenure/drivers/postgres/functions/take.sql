-- Lets a job hold a unique key, where nobody else does.
-- In: the key, the id of the job, until when at most (NULL: until it ends), whether as the mark of a
--     throttle, now. Out: NULL, or the id of the job that holds the key already.
-- Waits for a transaction that has just taken the key, or given it back, and then says what became of
-- it. Never locks a key that is held: the end of its job must not wait for us.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.take(
    p_key text, p_id text, p_until timestamptz, p_throttle boolean, p_now timestamptz
) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_holder text;
BEGIN
    LOOP
        INSERT INTO {schema}.keys (key, job_id, until, throttle)
        VALUES (p_key, p_id, p_until, p_throttle)
        ON CONFLICT (key) DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        SELECT k.job_id INTO v_holder FROM {schema}.keys AS k
        WHERE k.key = p_key AND (k.until IS NULL OR k.until > p_now);
        IF FOUND THEN
            RETURN v_holder;
        END IF;
        -- Its time is over, or it was given back this moment.
        DELETE FROM {schema}.keys WHERE key = p_key AND until <= p_now;
    END LOOP;
END $$;
