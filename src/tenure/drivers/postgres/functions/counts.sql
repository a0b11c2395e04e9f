-- How many jobs are where, by queue.
-- In: where counting stops, now or NULL for the server's.
-- Out: queue; waiting and due, waiting for their time, processing (counted, the first two up to the
--      bound); blocked, completed, failed, cancelled (from the totals); whether it is paused.
-- Stable: all of it is one snapshot.
CREATE OR REPLACE FUNCTION {schema}.counts(p_bound integer, p_now timestamptz)
RETURNS TABLE (
    queue text, due bigint, later bigint, processing bigint, blocked bigint, completed bigint,
    failed bigint, cancelled bigint, paused boolean
) LANGUAGE plpgsql STABLE {planning} AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    RETURN QUERY
    WITH RECURSIVE waiting (queue) AS (
        (
            SELECT j.queue FROM {schema}.jobs AS j WHERE j.state = 0 AND NOT j.kept
            ORDER BY j.queue, j.priority, j.run_at, j.seq LIMIT 1
        )
        UNION ALL
        SELECT (
            SELECT j.queue FROM {schema}.jobs AS j
            WHERE j.state = 0 AND NOT j.kept AND j.queue > w.queue
            ORDER BY j.queue, j.priority, j.run_at, j.seq LIMIT 1
        ) FROM waiting AS w WHERE w.queue IS NOT NULL
    ), kept (queue) AS (
        (
            SELECT j.queue FROM {schema}.jobs AS j WHERE j.state = 0 AND j.kept
            ORDER BY j.queue, j.run_at LIMIT 1
        )
        UNION ALL
        SELECT (
            SELECT j.queue FROM {schema}.jobs AS j
            WHERE j.state = 0 AND j.kept AND j.queue > k.queue
            ORDER BY j.queue, j.run_at LIMIT 1
        ) FROM kept AS k WHERE k.queue IS NOT NULL
    ), running AS (
        SELECT j.queue, count(*) AS n FROM {schema}.jobs AS j WHERE j.state = 2 GROUP BY j.queue
    ), ended AS (
        SELECT * FROM {schema}.ended()
    ), known AS (
        SELECT w.queue FROM waiting AS w WHERE w.queue IS NOT NULL
        UNION SELECT k.queue FROM kept AS k WHERE k.queue IS NOT NULL
        UNION SELECT r.queue FROM running AS r
        UNION SELECT e.queue FROM ended AS e
        UNION SELECT p.queue FROM {schema}.paused AS p
    )
    SELECT
        k.queue,
        {schema}.counted(k.queue, '-infinity', v_now, p_bound),
        {schema}.counted(k.queue, v_now, 'infinity', p_bound),
        coalesce((SELECT r.n FROM running AS r WHERE r.queue = k.queue), 0),
        coalesce((SELECT e.n FROM ended AS e WHERE e.queue = k.queue AND e.state = 1), 0),
        coalesce((SELECT e.n FROM ended AS e WHERE e.queue = k.queue AND e.state = 3), 0),
        coalesce((SELECT e.n FROM ended AS e WHERE e.queue = k.queue AND e.state = 4), 0),
        coalesce((SELECT e.n FROM ended AS e WHERE e.queue = k.queue AND e.state = 5), 0),
        EXISTS (SELECT FROM {schema}.paused AS p WHERE p.queue = k.queue)
    FROM known AS k;
END $$;
