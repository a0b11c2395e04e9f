-- Takes a job with limits, or keeps it back, and lets those come that follow from it.
-- In: its seq, a key that is full (NULL: it is taken), now; this transaction has locked its row, where
--     it stands in the order of claims, and has the right of hold_limits.sql.
-- Out: whether one has come that stands before its place.
-- What else belongs to an attempt is written together with all others, see claim.sql.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.advance(p_seq bigint, p_full text, p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_job record;
BEGIN
    UPDATE {schema}.jobs AS j
    SET kept = true, state = CASE WHEN p_full IS NULL THEN 2::smallint ELSE j.state END
    WHERE j.seq = p_seq
    RETURNING j.seq, j.queue, j.priority, j.run_at, j.lane, j.limits INTO v_job;
    IF p_full IS NULL THEN
        PERFORM {schema}.count_claim(v_job.limits, p_now);
    END IF;
    PERFORM {schema}.examine(v_job.queue, v_job.priority, v_job.lane, p_now);
    RETURN {schema}.offer(
        v_job.limits, v_job.queue, p_now, v_job.priority, v_job.run_at, v_job.seq
    );
END $$;
