-- See functions/retry.sql.
SELECT {schema}.retry($1, $2, $3)
