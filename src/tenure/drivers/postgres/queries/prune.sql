-- See functions/prune.sql.
SELECT {schema}.prune($1, $2, $3, $4, $5, $6, $7)
