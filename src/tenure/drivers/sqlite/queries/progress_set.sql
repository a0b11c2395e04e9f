-- Stores the progress of a running attempt. The caller has checked the hold.
-- In: value, now, seq. Out: nothing.
UPDATE tenure_jobs SET progress = ?1, updated_at = ?2 WHERE seq = ?3;
