-- Stores new jobs, all or none. See functions/enqueue.sql.
SELECT {schema}.enqueue($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
