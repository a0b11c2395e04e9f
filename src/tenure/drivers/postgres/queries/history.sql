-- The attempts that did not complete a job, oldest first. In: id. Out: one row for each.
SELECT attempt, serial, started_at, ended_at, worker, how
FROM {schema}.history
WHERE job = (SELECT seq FROM {schema}.jobs WHERE id = $1)
ORDER BY job, seq
