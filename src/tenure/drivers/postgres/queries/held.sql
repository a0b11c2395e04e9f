-- The jobs that a token holds, for a claim whose answer was lost.
-- In: token. Out: a job row (job_row.sql). The state is named for the sake of its index.
SELECT {job_row}
FROM {schema}.jobs WHERE state = 2 AND token = $1
