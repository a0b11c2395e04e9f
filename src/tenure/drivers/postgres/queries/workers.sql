-- The workers that show themselves. Out: what each says of itself, by id.
SELECT info FROM {schema}.workers WHERE until > clock_timestamp() ORDER BY id
