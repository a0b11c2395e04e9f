-- The next queue, by name, with a lane that is parked on a key. In: key, queue. Out: queue or NULL.
SELECT min(queue) FROM tenure_lanes INDEXED BY tenure_lanes_parked WHERE parked = ?1 AND queue > ?2;
