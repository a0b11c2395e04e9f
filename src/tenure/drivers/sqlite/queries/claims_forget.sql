-- Drops claims that no longer count. In: until, how many at most. Out: nothing.
DELETE FROM tenure_claims
WHERE (key, at) IN (SELECT key, at FROM tenure_claims WHERE at <= ?1 ORDER BY at LIMIT ?2);
