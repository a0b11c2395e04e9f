-- Takes the right to change this schema, until schema_unlock.sql or the end of the connection.
-- In: its name. Out: whether it was to be had.
SELECT pg_try_advisory_lock(hashtextextended('tenure.schema.' || $1, 0))
