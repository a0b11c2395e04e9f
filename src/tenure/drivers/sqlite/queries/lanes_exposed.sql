-- The keys of lanes of a queue that are not parked, best first. In: queue, now, how many at most.
-- Out: limits, for those whose head is due.
SELECT limits FROM (
    SELECT limits, head_at
    FROM tenure_lanes INDEXED BY tenure_lanes_parked
    WHERE parked IS NULL AND queue = ?1
    ORDER BY priority DESC, head_at, head
    LIMIT ?3
)
WHERE head_at <= ?2;
