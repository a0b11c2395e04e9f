-- Takes the right to change this schema, until the end of the transaction. In: its name. Out: whether
-- it was to be had; it is the same right as that of schema_lock_long.sql.
SELECT pg_try_advisory_xact_lock(hashtextextended('tenure.schema.' || $1, 0))
