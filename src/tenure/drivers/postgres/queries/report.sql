-- Shows a worker for a while, and forgets those whose time is over.
-- In: id, what it says of itself, for how many seconds. Out: nothing.
WITH over AS (
    DELETE FROM {schema}.workers WHERE until <= clock_timestamp() AND id <> $1
)
INSERT INTO {schema}.workers (id, info, until)
VALUES ($1, $2, clock_timestamp() + $3::double precision * interval '1 second')
ON CONFLICT (id) DO UPDATE SET info = excluded.info, until = excluded.until
