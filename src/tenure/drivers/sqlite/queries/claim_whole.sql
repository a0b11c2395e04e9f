-- A due job as it is once claimed. In: seq, now. Out: a job row (see rows.py). Nothing is changed.
SELECT
    seq, id, name, queue, 2, priority, max_attempts, timeout, headers, attempt + 1, stalls,
    serial + 1, run_at, created_at, ?2, finished_at, error, result, progress, cancel_requested,
    payload, unique_key, limits
FROM tenure_jobs
WHERE seq = ?1;
