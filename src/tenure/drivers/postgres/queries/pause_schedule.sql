-- Stops a schedule, or lets it go on, without the ticks that fell into the pause.
-- In: id, whether to stop it, now or NULL for the server's. Out: one row where it is there.
UPDATE {schema}.schedules
SET paused = $2,
    last = CASE WHEN paused AND NOT $2
        THEN greatest(last, coalesce($3::timestamptz, clock_timestamp())) ELSE last END
WHERE id = $1
RETURNING 1
