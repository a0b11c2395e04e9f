-- The best lane of a queue that is parked on a key, in the order of claims.
-- In: key, queue. Out: a lane (see lanes.py), or none.
SELECT id, queue, priority, limits, head, head_at, parked
FROM tenure_lanes INDEXED BY tenure_lanes_parked
WHERE parked = ?1 AND queue = ?2
ORDER BY priority DESC, head_at, head
LIMIT 1;
