-- Stores new jobs, all or none. See functions/enqueue.sql.
-- The types are named for clients that do not ask the server for them.
SELECT {schema}.enqueue(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::double precision[], $6::timestamptz[],
    $7::integer[], $8::integer[], $9::double precision[], $10::text[], $11::bytea[],
    $12::text[], $13::timestamptz
)
