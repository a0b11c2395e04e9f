-- The lane of a queue, a priority and a set of keys.
-- In: these. Out: a lane (see lanes.py), or none.
SELECT id, queue, priority, limits, head, head_at, parked
FROM tenure_lanes
WHERE queue = ?1 AND priority = ?2 AND limits = ?3;
