-- Stores whole jobs of another store, all or none. See functions/restore.sql.
-- The types are named for clients that do not ask the server for them.
SELECT answers, holders FROM {schema}.restore(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::integer[], $6::integer[],
    $7::double precision[], $8::text[], $9::bytea[], $10::smallint[], $11::integer[],
    $12::integer[], $13::bigint[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[],
    $17::timestamptz[], $18::text[], $19::bytea[], $20::bytea[], $21::boolean[], $22::text[],
    $23::text[], $24::text[], $25::double precision[], $26::double precision[], $27::text[],
    $28::boolean[], $29::timestamptz[], $30::text[], $31::bigint[], $32::timestamptz[],
    $33::timestamptz[], $34::integer[], $35::text[], $36::text[], $37::timestamptz
)
