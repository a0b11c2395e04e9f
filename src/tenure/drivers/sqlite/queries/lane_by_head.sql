-- The lane that a job is the head of. In: seq. Out: a lane (see lanes.py), or none.
SELECT id, queue, priority, limits, head, head_at, parked FROM tenure_lanes WHERE head = ?1;
