-- Settles holds, then takes due jobs, in one round trip and one commit.
-- In: as record.sql, without now; then as claim.sql. Out: a job row (job_row.sql), then
-- what record answers, in every row; one row without a job where nothing was claimed.
-- The join makes the claim run after the record, and each function sees what the one before it
-- wrote: what an outcome made pending can be claimed by the same call.
SELECT {job_row}, answers, freed
FROM {schema}.record(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $20
) AS r
LEFT JOIN LATERAL {schema}.claim($13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24) AS c ON true
