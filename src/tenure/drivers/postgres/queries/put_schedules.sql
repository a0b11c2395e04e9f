-- See functions/put_schedules.sql.
SELECT {schema}.put_schedules($1, $2, $3, $4)
