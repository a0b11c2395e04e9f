-- Since when the first of the due jobs of a queue that are kept back has been due.
-- In: queue, instant. Out: one row, the time or NULL. One seek.
SELECT min(run_at)
FROM tenure_jobs INDEXED BY tenure_jobs_kept_due
WHERE lane IS NOT NULL AND queue = ?1 AND run_at <= ?2;
