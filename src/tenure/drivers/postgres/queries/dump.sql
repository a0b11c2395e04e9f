-- Whole jobs in the order of arrival, as one statement sees them.
-- In: seq to go on after, last seq (NULL: the newest), how many at most, bytes of payload and result at
--     most beside the first, now or NULL for the server's.
-- Out: a job row (job_row.sql), then content, the last seq, whether there are more, whether the job holds
--      its unique key and until when (as in job_row.sql; NULL: until it ends), its history as JSON or NULL:
--      for each attempt its number, serial, begin and end in microseconds, worker, and how it ended.
SELECT {job_row}, content, last, page.more, held.holds, held.until, past.history
FROM (
    SELECT
        j.*,
        bounds.last,
        count(*) OVER () > $3 OR sum(j.size) OVER () > $4 AS more,
        row_number() OVER by_seq AS place,
        sum(j.size) OVER by_seq AS weight
    FROM (SELECT coalesce($2::bigint, (SELECT max(seq) FROM {schema}.jobs)) AS last) AS bounds
    CROSS JOIN LATERAL (
        -- What the head of a value says of its length; a large one is not fetched.
        SELECT *, octet_length(payload)::bigint + coalesce(octet_length(result), 0) AS size
        FROM {schema}.jobs
        WHERE seq > $1 AND seq <= bounds.last
        ORDER BY seq
        LIMIT $3 + 1
    ) AS j
    WINDOW by_seq AS (ORDER BY j.seq)
) AS page
LEFT JOIN LATERAL (
    SELECT true AS holds, timestamptz_send(k.until) AS until FROM {schema}.keys AS k
    WHERE k.key = page.key AND k.job_id = page.id
        AND (k.until IS NULL OR k.until > coalesce($5::timestamptz, clock_timestamp()))
) AS held ON true
CROSS JOIN LATERAL (
    SELECT json_agg(
        json_build_array(
            h.attempt, h.serial, (extract(epoch FROM h.started_at) * 1000000)::bigint,
            (extract(epoch FROM h.ended_at) * 1000000)::bigint, h.worker, h.how
        ) ORDER BY h.seq
    )::text AS history
    FROM {schema}.history AS h WHERE h.job = page.seq
) AS past
WHERE page.place <= $3 AND (page.place = 1 OR page.weight <= $4)
ORDER BY page.seq
