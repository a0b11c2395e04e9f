-- Settles holds. See functions/record.sql.
-- The types are named for clients that do not ask the server for them.
SELECT answers, freed FROM {schema}.record(
    $1::text[], $2::bigint[], $3::text[], $4::smallint[], $5::smallint[], $6::boolean[],
    $7::double precision[], $8::text[], $9::bytea[], $10::text[], $11::text[],
    $12::text[], $13::timestamptz
)
