-- Stores one attempt in the history of a job. In: the columns below in their order. Out: nothing.
INSERT INTO tenure_history (
    job, serial, attempt, outcome, started_at, ended_at, worker, kind, message
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job, serial) DO NOTHING;
