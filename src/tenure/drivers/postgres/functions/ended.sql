-- How many jobs have ended, by queue and state: the totals and the differences not yet folded.
-- Out: queue, state, how many; no row for none.
CREATE OR REPLACE FUNCTION {schema}.ended()
RETURNS TABLE (queue text, state smallint, n bigint) LANGUAGE sql STABLE AS $$
    SELECT t.queue, t.state, sum(t.n)::bigint
    FROM (
        SELECT queue, state, n FROM {schema}.totals
        UNION ALL SELECT queue, state, n FROM {schema}.differences
    ) AS t
    GROUP BY t.queue, t.state
    HAVING sum(t.n) <> 0
$$;
