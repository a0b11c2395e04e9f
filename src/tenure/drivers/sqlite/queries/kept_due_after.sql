-- The earliest due time after an instant, of the kept-back jobs of a queue.
-- In: queue, instant. Out: one row, the time or NULL. One seek.
SELECT min(run_at)
FROM tenure_jobs INDEXED BY tenure_jobs_kept_due
WHERE lane IS NOT NULL AND queue = ?1 AND run_at > ?2;
