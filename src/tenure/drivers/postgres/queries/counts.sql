-- See functions/counts.sql.
SELECT * FROM {schema}.counts($1, $2)
