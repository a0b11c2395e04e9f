-- The claims of a key in a span of time, newest first. In: key, after, until. Out: at, how many.
SELECT at, n FROM tenure_claims
WHERE key = ?1 AND at > ?2 AND at <= ?3
ORDER BY at DESC;
