-- Due jobs of one queue and one priority, in the order of claims, as they are once claimed.
-- In: queue, priority, now, how many at most. Out: a job row (see rows.py).
-- The index has the order, so no sort; the caller may stop reading early. Nothing is changed yet.
SELECT
    seq, id, name, queue, 2, priority, max_attempts, timeout, headers, attempt + 1, stalls,
    serial + 1, run_at, created_at, ?3, finished_at, error, result, progress, cancel_requested,
    payload, unique_key, limits
FROM tenure_jobs INDEXED BY tenure_jobs_ready
WHERE state = 0 AND lane IS NULL AND queue = ?1 AND priority = ?2 AND run_at <= ?3
ORDER BY run_at, seq
LIMIT ?4;
