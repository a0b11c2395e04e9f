-- Forgets that a worker has a lifeline. In: its id. Out: nothing.
DELETE FROM {schema}.lifelines WHERE worker = $1
