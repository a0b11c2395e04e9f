-- When the next job falls due. See functions/next_due.sql; the time as in job_row.sql.
SELECT timestamptz_send({schema}.next_due($1, $2))
