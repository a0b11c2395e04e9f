-- Drops the claims of a key that no longer count. In: key, until. Out: nothing.
DELETE FROM tenure_claims WHERE key = ?1 AND at <= ?2;
