-- Drops keys whose time is over. In: now, how many at most. Out: nothing.
DELETE FROM tenure_unique
WHERE key IN (
    SELECT key FROM tenure_unique
    WHERE until IS NOT NULL AND until <= ?1
    ORDER BY until
    LIMIT ?2
);
