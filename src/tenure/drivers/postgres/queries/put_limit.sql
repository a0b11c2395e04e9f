-- Stores a limit, and notes for the next claim that it has changed.
-- In: its key, how many claims in a second, how many at once (NULL: any number). Out: nothing.
WITH noted AS (
    INSERT INTO {schema}.marks (key) VALUES ($1)
)
INSERT INTO {schema}.limits (key, per_second, concurrent) VALUES ($1, $2, $3)
ON CONFLICT (key) DO UPDATE
SET per_second = excluded.per_second, concurrent = excluded.concurrent
