-- Stores a limit. In: key, per second, at once. Out: nothing.
INSERT INTO tenure_limits (key, per_second, concurrent) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE
SET per_second = excluded.per_second, concurrent = excluded.concurrent;
