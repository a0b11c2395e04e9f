-- See functions/cancel.sql.
SELECT {schema}.cancel($1, $2)
