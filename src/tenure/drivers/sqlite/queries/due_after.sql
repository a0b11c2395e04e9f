-- The earliest due time after an instant, of one queue and one priority.
-- In: queue, priority, instant. Out: one row, the time or NULL. One seek.
SELECT min(run_at)
FROM tenure_jobs INDEXED BY tenure_jobs_ready
WHERE state = 0 AND lane IS NULL AND queue = ?1 AND priority = ?2 AND run_at > ?3;
