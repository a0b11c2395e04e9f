-- Notes when lanes that are parked on a key are to be looked at again, where only time is in the way.
-- In: the key, what free_at.sql says of it; this transaction has the right of hold_limits.sql.
-- Where a hold must end first, that looks again; where there is room, nothing is to be noted.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.expect(p_key text, p_free timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF isfinite(p_free) AND EXISTS (SELECT FROM {schema}.lanes WHERE parked = p_key) THEN
        INSERT INTO {schema}.holds AS h (key, n, free_at) VALUES (p_key, 0, p_free)
        ON CONFLICT (key) DO UPDATE SET free_at = excluded.free_at
        WHERE h.free_at IS DISTINCT FROM excluded.free_at;
    ELSE
        UPDATE {schema}.holds SET free_at = NULL WHERE key = p_key AND free_at IS NOT NULL;
        DELETE FROM {schema}.holds WHERE key = p_key AND n <= 0 AND free_at IS NULL;
    END IF;
END $$;
