-- The attempts of a job that did not complete it, oldest first. In: id. Out: attempt, serial,
-- outcome, started at, ended at, worker, kind, message.
SELECT h.attempt, h.serial, h.outcome, h.started_at, h.ended_at, h.worker, h.kind, h.message
FROM tenure_jobs AS j INDEXED BY tenure_jobs_id
CROSS JOIN tenure_history AS h ON h.job = j.seq
WHERE j.id = ?1
ORDER BY h.serial;
