-- See functions/drop_schedules.sql.
SELECT {schema}.drop_schedules($1)
