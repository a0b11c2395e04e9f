-- Stores one whole job of another store, whose id is known to be new; nobody holds it.
-- In: the columns below in their order. Out: nothing.
INSERT INTO tenure_jobs (
    seq, id, name, queue, state, priority, run_at, attempt, stalls, serial, max_attempts, timeout,
    cancel_requested, content, created_at, updated_at, finished_at, unique_key, limits, lane,
    headers, error, progress, result, payload
)
VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
);
