-- Makes failed and cancelled jobs due now.
-- In: ids, the serials they must have (NULL: any), now or NULL for the server's.
-- Out: one answer for each id, as in `Answer`.
-- Locks and judges as cancel.sql does.
CREATE OR REPLACE FUNCTION {schema}.retry(p_ids text[], p_serials bigint[], p_now timestamptz)
RETURNS text[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_answers text[] := '{}';
    v_answer text;
    v_job {schema}.jobs;
BEGIN
    PERFORM FROM {schema}.jobs WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE;
    FOR i IN 1 .. cardinality(p_ids) LOOP
        SELECT * INTO v_job FROM {schema}.jobs WHERE id = p_ids[i];
        IF NOT FOUND THEN
            v_answer := 'unknown';
        ELSIF v_job.serial <> p_serials[i] THEN
            v_answer := 'done';  -- someone has retried it since
        ELSIF v_job.state = 2 THEN
            v_answer := 'running';
        ELSIF v_job.state < 2 THEN
            v_answer := 'live';
        ELSIF v_job.state = 3 THEN
            v_answer := 'finished';
        ELSE
            v_answer := 'done';
            UPDATE {schema}.jobs
            SET state = 0, attempt = 0, stalls = 0, run_at = v_now, finished_at = NULL,
                updated_at = v_now
            WHERE seq = v_job.seq;
            INSERT INTO {schema}.differences (queue, state, n)
            VALUES (v_job.queue, v_job.state, -1);
        END IF;
        v_answers := v_answers || v_answer;
    END LOOP;
    RETURN v_answers;
END $$;
