-- One job. In: id. Out: a job row (job_row.sql).
SELECT {job_row}
FROM {schema}.jobs WHERE id = $1
