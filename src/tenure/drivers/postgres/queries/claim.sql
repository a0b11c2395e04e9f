-- Takes due jobs. See functions/claim.sql. Out: a job row (job_row.sql).
SELECT {job_row}
FROM {schema}.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
