-- The limit that governs a key: the one on the key itself, else the one with the longest beginning.
-- In: the key. Out: its row, all NULL for none.
-- Looked up by each beginning of the key, so that it costs the same however many limits there are.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.limit_of(p_key text)
RETURNS {schema}.limits LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_limit {schema}.limits;
BEGIN
    SELECT * INTO v_limit FROM {schema}.limits
    WHERE key = ANY (ARRAY(
        SELECT p_key UNION ALL SELECT left(p_key, n) || '*' FROM generate_series(0, length(p_key)) AS n
    ))
    ORDER BY (key = p_key) DESC, length(key) DESC
    LIMIT 1;
    RETURN v_limit;
END $$;
