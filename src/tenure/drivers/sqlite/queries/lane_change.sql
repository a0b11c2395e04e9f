-- Changes a lane. In: head, its due time, parked on, id. Out: nothing.
UPDATE tenure_lanes SET head = ?1, head_at = ?2, parked = ?3 WHERE id = ?4;
