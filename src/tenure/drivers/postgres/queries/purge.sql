-- Deletes jobs that match and are not processing.
-- In: how many at most, now or NULL for the server's, state, queue, name (NULL: any). Out: how many.
-- Only what is found is locked, so that looking through a large table stops no claim.
SELECT {schema}.remove(ARRAY(
    SELECT j.seq FROM {schema}.jobs AS j
    WHERE j.state <> 2
        AND ($3::smallint IS NULL OR j.state = $3)
        AND ($4::text IS NULL OR j.queue = $4)
        AND ($5::text IS NULL OR j.name = $5)
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), coalesce($2::timestamptz, clock_timestamp()))
