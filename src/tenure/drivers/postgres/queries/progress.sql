-- Stores the progress of a running attempt, where its hold is current.
-- In: id, serial, token, value, now or NULL for the server's. Out: whether it was stored, whether
-- the job is there at all.
WITH stored AS (
    UPDATE {schema}.jobs
    SET progress = $4, updated_at = coalesce($5::timestamptz, clock_timestamp())
    WHERE id = $1 AND serial = $2 AND token = $3
    RETURNING 1
)
SELECT EXISTS (SELECT FROM stored), EXISTS (SELECT FROM {schema}.jobs WHERE id = $1)
