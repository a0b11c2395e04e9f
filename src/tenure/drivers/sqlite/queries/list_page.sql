-- Jobs between the cursor and the floor that match, newest arrival first.
-- In: cursor, floor, state, queue, name (NULL: any), how many at most.
-- Out: a job row (see rows.py). Payloads are read for matching jobs only.
-- {source} is one of the texts in inspection.py: which index gives the candidates.
SELECT
    seq, id, name, queue, state, priority, max_attempts, timeout, headers, attempt, stalls,
    serial, run_at, created_at, updated_at, finished_at, error, result, progress,
    cancel_requested, payload, unique_key, limits
FROM tenure_jobs {source} AND seq < ?1 AND seq >= ?2
    AND (?3 IS NULL OR state = ?3)
    AND (?4 IS NULL OR queue = ?4)
    AND (?5 IS NULL OR name = ?5)
ORDER BY seq DESC
LIMIT ?6;
