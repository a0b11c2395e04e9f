-- See functions/fold.sql.
SELECT {schema}.fold($1)
