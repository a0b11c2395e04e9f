-- Since when the first of the due jobs of one queue and one priority has been due.
-- In: queue, priority, instant. Out: one row, the time or NULL. One seek.
SELECT min(run_at)
FROM tenure_jobs INDEXED BY tenure_jobs_ready
WHERE state = 0 AND lane IS NULL AND queue = ?1 AND priority = ?2 AND run_at <= ?3;
