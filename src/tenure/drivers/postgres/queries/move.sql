-- See functions/move.sql.
SELECT {schema}.move($1, $2, $3, $4, $5, $6)
