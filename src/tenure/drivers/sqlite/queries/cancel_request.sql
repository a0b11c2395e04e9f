-- Stores the wish to cancel a processing job. In: now, seq. Out: nothing.
UPDATE tenure_jobs SET cancel_requested = 1, updated_at = ?1 WHERE seq = ?2;
