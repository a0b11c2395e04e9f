-- Cancels a waiting job. In: now, seq. Out: nothing.
UPDATE tenure_jobs SET state = 5, cancel_requested = 0, lane = NULL, finished_at = ?1,
    updated_at = ?1
WHERE seq = ?2;
