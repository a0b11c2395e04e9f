-- Whether a job with limits is among those that a claim of a queue would look at.
-- In: the queue, how many jobs are wanted, now. Out: true or false.
-- Asked where a lane has a head that is due, so that the claim waits for its right before it has locked
-- any job, and not after.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.near(p_queue text, p_limit integer, p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_left integer := p_limit;
    v_seen record;
    v_priority integer := {schema}.priority_below(p_queue, 2147483647);
BEGIN
    WHILE v_priority IS NOT NULL AND v_left > 0 LOOP
        SELECT count(*) AS n, bool_or(first.lane IS NOT NULL) AS limited INTO v_seen
        FROM (
            SELECT j.lane FROM {schema}.jobs AS j
            WHERE j.state = 0 AND NOT j.kept AND j.queue = p_queue AND j.priority = v_priority
                AND j.run_at <= p_now
            ORDER BY j.run_at, j.seq
            LIMIT v_left
        ) AS first;
        IF v_seen.limited THEN
            RETURN true;
        END IF;
        v_left := v_left - v_seen.n;
        v_priority := {schema}.priority_below(p_queue, v_priority);
    END LOOP;
    RETURN false;
END $$;
