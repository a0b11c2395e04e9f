-- How many jobs have ended, by queue and state: the totals and the differences not yet folded.
-- Out: queue, state, how many, bytes of the completed ones; no row for none.
CREATE OR REPLACE FUNCTION {schema}.ended()
RETURNS TABLE (queue text, state smallint, n bigint, bytes bigint) LANGUAGE sql STABLE AS $$
    SELECT t.queue, t.state, sum(t.n)::bigint, sum(t.bytes)::bigint
    FROM (
        SELECT queue, state, n, bytes FROM {schema}.totals
        UNION ALL SELECT queue, state, n, bytes FROM {schema}.differences
    ) AS t
    GROUP BY t.queue, t.state
    HAVING sum(t.n) <> 0
$$;
