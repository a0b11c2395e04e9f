-- The next key, in order, that a lane is parked on. In: key. Out: one row, the key or NULL.
SELECT min(parked) FROM tenure_lanes INDEXED BY tenure_lanes_parked WHERE parked > ?1;
