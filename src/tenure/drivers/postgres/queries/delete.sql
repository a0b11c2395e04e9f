-- See functions/delete.sql.
SELECT {schema}.delete($1, $2)
