-- Settles holds, then takes due jobs, in one round trip and one commit.
-- In: as record.sql, without now; then as claim.sql. Out: what record answers in every row, then a
-- job row (see rows.py); one row without a job where nothing was claimed.
-- The join makes the claim run after the record, and each function sees what the one before it
-- wrote: what an outcome made pending can be claimed by the same call.
SELECT
    r.answers, r.freed,
    c.queue, c.priority, c.run_at, c.seq, c.lease, c.id, c.name, c.state, c.max_attempts, c.timeout,
    c.headers, c.attempt, c.stalls, c.serial, c.created_at, c.updated_at, c.finished_at, c.error,
    c.result, c.progress, c.cancel_requested, c.key, c.key_until, c.key_mode, c.key_period,
    c.key_max_wait, c.limits, c.payload
FROM {schema}.record(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $20
) AS r
LEFT JOIN LATERAL {schema}.claim($13, $14, $15, $16, $17, $18, $19, $20) AS c ON true
