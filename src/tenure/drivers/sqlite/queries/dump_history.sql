-- The attempts that did not complete these jobs, oldest first of each. In: a JSON array of seqs.
-- Out: seq, then as history_of. CROSS JOIN fixes the order: one seek for each given job.
SELECT
    h.job, h.attempt, h.serial, h.outcome, h.started_at, h.ended_at, h.worker, h.kind, h.message
FROM json_each(?1) AS given
CROSS JOIN tenure_history AS h ON h.job = given.value
ORDER BY h.job, h.serial;
