-- Removes a lane that has no jobs. In: id. Out: nothing.
DELETE FROM tenure_lanes WHERE id = ?1;
