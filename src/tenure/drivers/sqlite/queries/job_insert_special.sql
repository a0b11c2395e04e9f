-- Stores one job with a unique key or limits, whose id is known to be new. Apart from job_insert,
-- since three more values that are NULL would cost every job a fifth of the statement.
-- In: the columns below in their order. Out: nothing.
INSERT INTO tenure_jobs (
    seq, id, name, queue, state, priority, run_at, attempt, stalls, serial, max_attempts, timeout,
    cancel_requested, content, created_at, updated_at, headers, payload, unique_key, limits,
    lane
)
VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 0, 0, 0, ?7, ?8, 0, ?9, ?10, ?10, ?11, ?12, ?13, ?14, ?15);
