-- Notes when lanes that are parked on a key are to be looked at again, where only time is in the way.
-- In: the key, now; this transaction has the right of hold_limits.sql.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.expect(p_key text, p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_free timestamptz := {schema}.free_at(p_key, p_now);
BEGIN
    IF isfinite(v_free) AND EXISTS (SELECT FROM {schema}.lanes WHERE parked = p_key) THEN
        INSERT INTO {schema}.holds AS h (key, n, free_at) VALUES (p_key, 0, v_free)
        ON CONFLICT (key) DO UPDATE SET free_at = excluded.free_at
        WHERE h.free_at IS DISTINCT FROM excluded.free_at;
    ELSE
        -- The end of a hold comes first, and looks again; or there is nothing to look at.
        UPDATE {schema}.holds SET free_at = NULL WHERE key = p_key AND free_at IS NOT NULL;
        DELETE FROM {schema}.holds WHERE key = p_key AND n <= 0 AND free_at IS NULL;
    END IF;
END $$;
