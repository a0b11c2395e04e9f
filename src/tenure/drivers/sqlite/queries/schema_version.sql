-- The version of the tables; no row where the file has none of ours.
-- In: nothing. Out: version. Run only after schema_present.
SELECT version FROM tenure_schema;
