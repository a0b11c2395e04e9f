-- Wakes whoever listens. In: channel. Out: nothing. Never with a payload: those have a size limit,
-- and a listener that gets none cannot rely on one.
SELECT pg_notify($1::text, '')
