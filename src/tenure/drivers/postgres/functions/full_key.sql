-- The first of some keys that lets no further claim through now.
-- In: keys, now. Out: a key, or NULL where there is none.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.full_key(p_limits text[], p_now timestamptz)
RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_key text;
BEGIN
    FOREACH v_key IN ARRAY coalesce(p_limits, '{}') LOOP
        IF {schema}.free_at(v_key, p_now) > p_now THEN
            RETURN v_key;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
