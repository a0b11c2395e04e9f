-- Ends holds whose lease has run out. See functions/reclaim.sql.
SELECT * FROM {schema}.reclaim($1, $2, $3, $4, $5, $6)
