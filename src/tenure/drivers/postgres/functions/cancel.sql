-- Cancels waiting jobs; stores the wish for processing ones.
-- In: ids, now or NULL for the server's. Out: one answer for each id, as in `Answer`.
-- All rows are locked first, in the order of ids, so that two calls never wait crosswise. Then one
-- by one, so that an id that comes twice is judged by what the first time made of it.
CREATE OR REPLACE FUNCTION {schema}.cancel(p_ids text[], p_now timestamptz)
RETURNS text[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_answers text[] := '{}';
    v_answer text;
    v_id text;
    v_job {schema}.jobs;
BEGIN
    PERFORM FROM {schema}.jobs WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE;
    FOREACH v_id IN ARRAY p_ids LOOP
        SELECT * INTO v_job FROM {schema}.jobs WHERE id = v_id;
        IF NOT FOUND THEN
            v_answer := 'unknown';
        ELSIF v_job.state >= 3 THEN
            v_answer := 'finished';
        ELSIF v_job.state = 2 THEN
            v_answer := 'requested';
            UPDATE {schema}.jobs SET cancel_requested = true, updated_at = v_now
            WHERE seq = v_job.seq;
        ELSE
            v_answer := 'done';
            UPDATE {schema}.jobs
            SET state = 5, cancel_requested = false, finished_at = v_now, updated_at = v_now
            WHERE seq = v_job.seq;
            INSERT INTO {schema}.differences (queue, state, n) VALUES (v_job.queue, 5, 1);
            IF v_job.lane IS NOT NULL THEN
                INSERT INTO {schema}.marks (queue, priority, lane)
                VALUES (v_job.queue, v_job.priority, v_job.lane);
            END IF;
            IF v_job.key IS NOT NULL THEN
                PERFORM {schema}.free(ARRAY[v_job.key], ARRAY[v_job.id]);
            END IF;
        END IF;
        v_answers := v_answers || v_answer;
    END LOOP;
    RETURN v_answers;
END $$;
