-- Deletes the completed jobs of a queue that are beyond a bound, those that ended first first.
-- In: queue; how many of its completed jobs stay, and how many bytes of their payloads and results
--     (NULL: all); up to which instant they must have ended, how many to delete at most, now.
-- Out: how many.
-- What is there and what of it is to go is one look, before anything is locked: several pruners that
-- see the same surplus find the same jobs, one of them deletes these, and nobody others in their stead.
-- The length of a large value stands in its row, so none is fetched.
CREATE OR REPLACE FUNCTION {schema}.prune_surplus(
    p_queue text, p_count bigint, p_bytes bigint, p_until timestamptz, p_limit integer,
    p_now timestamptz
) RETURNS integer LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_surplus bigint[] := ARRAY(
        SELECT o.seq
        FROM {schema}.ended() AS stored
        CROSS JOIN (
            SELECT
                e.seq,
                row_number() OVER oldest_first AS place,
                sum(e.size) OVER oldest_first - e.size AS older
            FROM (
                SELECT
                    j.seq, j.finished_at,
                    octet_length(j.payload)::bigint + coalesce(octet_length(j.result), 0) AS size
                FROM {schema}.jobs AS j
                WHERE j.state = 3 AND j.queue = p_queue AND j.finished_at <= p_until
                ORDER BY j.finished_at, j.seq
                LIMIT p_limit
            ) AS e
            WINDOW oldest_first AS (
                ORDER BY e.finished_at, e.seq ROWS UNBOUNDED PRECEDING
            )
        ) AS o
        WHERE stored.queue = p_queue AND stored.state = 3
            AND (o.place <= stored.n - p_count OR o.older < stored.bytes - p_bytes)
    );
BEGIN
    RETURN {schema}.remove(ARRAY(
        SELECT j.seq FROM {schema}.jobs AS j WHERE j.seq = ANY (v_surplus) FOR UPDATE SKIP LOCKED
    ), p_now);
END $$;
