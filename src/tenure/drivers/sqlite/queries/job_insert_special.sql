-- Stores one job with a unique key or limits, whose id is known to be new. Apart from job_insert,
-- since three more values that are NULL would cost every job a fifth of the statement.
-- In: as job_insert, then the columns that it has more. Out: nothing.
INSERT INTO tenure_jobs (
    state, attempt, stalls, serial, cancel_requested,
    seq, id, name, queue, priority, run_at, max_attempts, timeout, content, created_at, updated_at,
    headers, payload, unique_key, limits, lane
)
VALUES (
    0, 0, 0, 0, 0,
    ?, ?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0), ?, ?, ?, nullif(?, ''), ?, ?, ?, ?
);
