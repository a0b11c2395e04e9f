-- Removes a limit, and notes it for the next claim. In: its key. Out: one row where it was there.
WITH dropped AS (
    DELETE FROM {schema}.limits WHERE key = $1 RETURNING key
)
INSERT INTO {schema}.marks (key) SELECT key FROM dropped RETURNING 1
