-- When the next job falls due. See functions/next_due.sql.
SELECT {schema}.next_due($1, $2)
