-- The jobs that a token holds, in the order of claims, for a claim whose answer was lost.
-- In: token. Out: a job row (see rows.py), then the lease.
SELECT
    seq, id, name, queue, state, priority, max_attempts, timeout, headers, attempt, stalls,
    serial, run_at, created_at, updated_at, finished_at, error, result, progress,
    cancel_requested, payload, unique_key, limits, lease
FROM tenure_jobs INDEXED BY tenure_jobs_processing
WHERE state = 2 AND token = ?1
ORDER BY priority DESC, run_at, seq;
