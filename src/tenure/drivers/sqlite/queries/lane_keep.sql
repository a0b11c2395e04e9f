-- Keeps a job back in a lane, or exposes it to claims. In: lane or NULL, seq. Out: nothing.
UPDATE tenure_jobs SET lane = ?1 WHERE seq = ?2;
