-- See functions/restore_schedules.sql.
SELECT {schema}.restore_schedules(
    $1::text[], $2::text[], $3::bytea[], $4::timestamptz[], $5::timestamptz[], $6::boolean[]
)
