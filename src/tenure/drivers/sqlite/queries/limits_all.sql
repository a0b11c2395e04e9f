-- The limits; few. In: nothing. Out: key, per second, at once.
SELECT key, per_second, concurrent FROM tenure_limits ORDER BY key;
