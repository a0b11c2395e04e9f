-- Adds the running attempt of a job to its history. Run before the row says how it ended.
-- In: outcome, kind, message, now, seq. Out: nothing.
INSERT INTO tenure_history (
    job, serial, attempt, outcome, started_at, ended_at, worker, kind, message
)
SELECT seq, serial, attempt, ?1, ifnull(claimed_at, ?4), ?4, ifnull(worker, ''), ?2, ?3
FROM tenure_jobs
WHERE seq = ?5
ON CONFLICT (job, serial) DO NOTHING;
