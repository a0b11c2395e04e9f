-- The next lower priority in use among the waiting jobs of a queue that stand in the order of claims.
-- In: queue, priority. Out: a priority, or NULL where there is none.
-- One probe of the ready index, whatever lies at the better priorities.
CREATE OR REPLACE FUNCTION {schema}.priority_below(p_queue text, p_priority integer)
RETURNS integer LANGUAGE plpgsql STABLE {planning} AS $$
BEGIN
    RETURN (
        SELECT j.priority FROM {schema}.jobs AS j
        WHERE j.state = 0 AND NOT j.kept AND j.queue = p_queue AND j.priority < p_priority
        ORDER BY j.queue DESC, j.priority DESC, j.run_at DESC, j.seq DESC
        LIMIT 1
    );
END $$;
