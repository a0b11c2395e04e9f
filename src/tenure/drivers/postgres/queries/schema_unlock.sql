-- Gives up what schema_lock_long.sql took. In: name of the schema. Out: whether it was held.
SELECT pg_advisory_unlock(hashtextextended('tenure.schema.' || $1, 0))
