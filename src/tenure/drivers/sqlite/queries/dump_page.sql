-- Whole jobs in the order of arrival. In: seq to go on after, last seq, how many at most.
-- Out: a job row (see rows.py), then content.
SELECT
    seq, id, name, queue, state, priority, max_attempts, timeout, headers, attempt, stalls,
    serial, run_at, created_at, updated_at, finished_at, error, result, progress,
    cancel_requested, payload, unique_key, limits, content
FROM tenure_jobs NOT INDEXED
WHERE seq > ?1 AND seq <= ?2
ORDER BY seq
LIMIT ?3;
