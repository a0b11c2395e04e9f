-- The limits, by key.
SELECT key, per_second, concurrent FROM {schema}.limits ORDER BY key
