-- Makes failed and cancelled jobs due now, those with a unique key where it was taken for them.
-- In: ids and serials as in retry.sql, what take_anew.sql answered, now. Out: as retry.sql.
-- Raises TN001 where a job has changed since its key was taken, or was not.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.retry_holding(
    p_ids text[], p_serials bigint[], p_takers text[], p_held text[], p_now timestamptz
) RETURNS text[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_answers text[] := '{}';
    v_answer text;
    v_job {schema}.jobs;
    v_took integer := 0;
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
        ELSIF v_job.key IS NOT NULL AND v_job.key_mode <> 'throttle'
            AND NOT v_job.id = ANY (p_takers)
        THEN
            IF NOT v_job.key = ANY (p_held) THEN
                RAISE EXCEPTION USING ERRCODE = 'TN001';
            END IF;
            v_answer := 'held';
        ELSE
            v_answer := 'done';
            v_took := v_took + (v_job.id = ANY (p_takers))::integer;
            UPDATE {schema}.jobs
            SET state = 0, attempt = 0, stalls = 0, run_at = p_now, finished_at = NULL,
                kept = lane IS NOT NULL, updated_at = p_now
            WHERE seq = v_job.seq;
            IF v_job.lane IS NOT NULL THEN
                PERFORM {schema}.mark_lanes(ARRAY[v_job.seq]);
            END IF;
            INSERT INTO {schema}.differences (queue, state, n)
            VALUES (v_job.queue, v_job.state, -1);
        END IF;
        v_answers := v_answers || v_answer;
    END LOOP;
    IF v_took <> cardinality(p_takers) THEN
        RAISE EXCEPTION USING ERRCODE = 'TN001';
    END IF;
    RETURN v_answers;
END $$;
