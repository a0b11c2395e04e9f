-- What a claim must know first: which queues are paused (0), and of which keys the rate may let
-- jobs through again (1). The latter finds nothing where there are no limits. An instant of the far
-- future was noted before the clock stepped back.
-- In: now, the latest instant that makes sense, how many keys at most. Out: name or key, 0 or 1.
SELECT name, 0 FROM tenure_queues WHERE paused
UNION ALL
SELECT key, 1 FROM (
    SELECT key FROM tenure_holds INDEXED BY tenure_holds_free WHERE free_at <= ?1 LIMIT ?3
)
UNION ALL
SELECT key, 1 FROM (
    SELECT key FROM tenure_holds INDEXED BY tenure_holds_free WHERE free_at > ?2 LIMIT ?3
);
