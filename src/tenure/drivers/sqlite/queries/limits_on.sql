-- The limits on these keys. In: keys as JSON. Out: as limits_all.sql; a seek for each key.
SELECT key, per_second, concurrent
FROM tenure_limits
WHERE key IN (SELECT value FROM json_each(?1));
