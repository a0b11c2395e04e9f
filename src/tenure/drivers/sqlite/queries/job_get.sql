-- One job by its id. In: id. Out: a job row (see rows.py), or none.
SELECT
    seq, id, name, queue, state, priority, max_attempts, timeout, headers, attempt, stalls,
    serial, run_at, created_at, updated_at, finished_at, error, result, progress,
    cancel_requested, payload, unique_key, limits
FROM tenure_jobs INDEXED BY tenure_jobs_id
WHERE id = ?1;
