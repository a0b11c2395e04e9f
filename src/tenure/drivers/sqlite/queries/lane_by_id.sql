-- A lane. In: id. Out: a lane (see lanes.py), or none.
SELECT id, queue, priority, limits, head, head_at, parked FROM tenure_lanes WHERE id = ?1;
