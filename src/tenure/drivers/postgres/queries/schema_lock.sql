-- Waits until nobody else changes this schema, until the end of the transaction. In: its name.
SELECT pg_advisory_xact_lock(hashtextextended('tenure.schema.' || $1, 0))
