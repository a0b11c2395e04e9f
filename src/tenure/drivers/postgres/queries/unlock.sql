-- Gives up the lock of a lifeline in the session that has it. In: the lock. Out: whether it had it.
SELECT pg_advisory_unlock_shared($1)
