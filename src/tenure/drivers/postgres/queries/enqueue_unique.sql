-- Stores new jobs with unique keys among them, all or none. See functions/enqueue_unique.sql.
-- The types are named for clients that do not ask the server for them.
SELECT others, holders FROM {schema}.enqueue_unique(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::double precision[], $6::timestamptz[],
    $7::integer[], $8::integer[], $9::double precision[], $10::text[], $11::bytea[], $12::text[],
    $13::text[], $14::text[], $15::double precision[], $16::double precision[], $17::text[],
    true, $18::timestamptz
)
