-- The attempts that did not complete a job, oldest first. In: id. Out: one row for each.
-- Times as in job_row.sql.
SELECT attempt, serial, timestamptz_send(started_at), timestamptz_send(ended_at), worker, how
FROM {schema}.history
WHERE job = (SELECT seq FROM {schema}.jobs WHERE id = $1)
ORDER BY job, seq
