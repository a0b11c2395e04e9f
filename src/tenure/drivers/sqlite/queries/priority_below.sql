-- The next lower priority in use among the waiting jobs of a queue.
-- In: queue, priority. Out: one row, the priority or NULL. One seek.
-- Why: with one scan over (priority, run_at) a million future jobs of a better priority, ahead of
-- the ready ones, make a claim 69 ms long; with a seek for each priority it stays at 0.1 ms.
SELECT max(priority)
FROM tenure_jobs INDEXED BY tenure_jobs_ready
WHERE state = 0 AND lane IS NULL AND queue = ?1 AND priority < ?2;
