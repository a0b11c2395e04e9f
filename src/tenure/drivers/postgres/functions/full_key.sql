-- The first of some keys that lets no further claim through now.
-- In: keys, now. Out: a key and when it does (free_at.sql), or NULLs where all have room.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.full_key(
    p_limits text[], p_now timestamptz, OUT key text, OUT free timestamptz
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    FOREACH key IN ARRAY coalesce(p_limits, '{}') LOOP
        free := {schema}.free_at(key, p_now);
        IF free > p_now THEN
            RETURN;
        END IF;
    END LOOP;
    key := NULL;
    free := NULL;
END $$;
