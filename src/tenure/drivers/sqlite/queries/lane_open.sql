-- Makes a lane. In: queue, priority, limits, head, its due time, parked on. Out: id.
INSERT INTO tenure_lanes (queue, priority, limits, head, head_at, parked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
RETURNING id;
