-- The limits, by key. In: how many at most (-1: all). Out: key, per second, at once.
SELECT key, per_second, concurrent FROM tenure_limits ORDER BY key LIMIT ?1;
