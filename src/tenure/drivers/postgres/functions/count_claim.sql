-- Counts a claim, and the hold that it makes, for each of its keys.
-- In: keys, now; this transaction has the right of hold_limits.sql.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.count_claim(p_limits text[], p_now timestamptz)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO {schema}.holds AS h (key, n)
    SELECT DISTINCT k, 1 FROM unnest(p_limits) AS k WHERE k IS NOT NULL
    ON CONFLICT (key) DO UPDATE SET n = h.n + 1;
    INSERT INTO {schema}.claims AS c (key, at, n)
    SELECT DISTINCT k, p_now, 1 FROM unnest(p_limits) AS k
    WHERE ({schema}.limit_of(k)).per_second IS NOT NULL
    ON CONFLICT (key, at) DO UPDATE SET n = c.n + 1;
    IF FOUND THEN
        DELETE FROM {schema}.claims WHERE key = ANY (p_limits) AND at <= p_now - interval '1 second';
    END IF;
END $$;
