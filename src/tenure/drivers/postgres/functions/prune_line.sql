-- Deletes jobs of one queue and state that ended up to an instant, those that ended first first.
-- In: queue, state, instant, how many at most, now. Out: how many.
CREATE OR REPLACE FUNCTION {schema}.prune_line(
    p_queue text, p_state smallint, p_until timestamptz, p_limit integer, p_now timestamptz
) RETURNS integer LANGUAGE plpgsql VOLATILE {planning} AS $$
BEGIN
    RETURN {schema}.remove(ARRAY(
        SELECT j.seq FROM {schema}.jobs AS j
        WHERE j.state = p_state AND j.queue = p_queue AND j.finished_at <= p_until
        ORDER BY j.finished_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), p_now);
END $$;
