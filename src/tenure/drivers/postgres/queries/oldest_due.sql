-- For each of some queues, since when the first of its due jobs has been due.
-- In: queues, now or NULL for the server's. Out: for each, in order, a time as in job_row.sql, or NULL.
-- One look for each priority in use.
WITH RECURSIVE
    asked AS (SELECT place, queue FROM unnest($1::text[]) WITH ORDINALITY AS q (queue, place)),
    instant AS (SELECT coalesce($2, clock_timestamp()) AS now),
    levels AS (
        SELECT place, queue, {schema}.priority_below(queue, 2147483647) AS priority FROM asked
        UNION ALL
        SELECT place, queue, {schema}.priority_below(queue, priority) FROM levels
        WHERE priority IS NOT NULL
    ),
    found AS (
        SELECT l.place, (
            SELECT j.run_at FROM {schema}.jobs AS j
            WHERE j.state = 0 AND NOT j.kept AND j.queue = l.queue AND j.priority = l.priority
                AND j.run_at <= (SELECT now FROM instant)
            ORDER BY j.run_at, j.seq
            LIMIT 1
        ) AS due
        FROM levels AS l WHERE l.priority IS NOT NULL
        UNION ALL
        SELECT a.place, (
            SELECT j.run_at FROM {schema}.jobs AS j
            WHERE j.state = 0 AND j.kept AND j.queue = a.queue
                AND j.run_at <= (SELECT now FROM instant)
            ORDER BY j.queue, j.run_at
            LIMIT 1
        )
        FROM asked AS a
    )
SELECT timestamptz_send(min(due)) FROM found GROUP BY place ORDER BY place
