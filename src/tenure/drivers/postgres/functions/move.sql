-- Changes queue, due time or priority of waiting jobs; what is NULL stays.
-- In: ids, queues, due times, priorities, the serials they must have (NULL: any), now or NULL for
--     the server's. Out: one answer for each id, as in `Answer`.
-- Locks and judges as cancel.sql does.
CREATE OR REPLACE FUNCTION {schema}.move(
    p_ids text[], p_queues text[], p_ats timestamptz[], p_priorities integer[],
    p_serials bigint[], p_now timestamptz
) RETURNS text[] LANGUAGE plpgsql VOLATILE {planning} AS $$
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
            v_answer := 'live';
        ELSIF v_job.state = 2 THEN
            v_answer := 'running';
        ELSIF v_job.state >= 3 THEN
            v_answer := 'finished';
        ELSE
            v_answer := 'done';
            UPDATE {schema}.jobs
            SET queue = coalesce(p_queues[i], queue), run_at = coalesce(p_ats[i], run_at),
                priority = coalesce(p_priorities[i], priority), kept = lane IS NOT NULL,
                updated_at = v_now
            WHERE seq = v_job.seq;
            IF v_job.lane IS NOT NULL THEN  -- in the one it leaves, and in the one it gets
                INSERT INTO {schema}.marks (queue, priority, lane)
                VALUES (v_job.queue, v_job.priority, v_job.lane);
                PERFORM {schema}.mark_lanes(ARRAY[v_job.seq]);
            END IF;
        END IF;
        v_answers := v_answers || v_answer;
    END LOOP;
    RETURN v_answers;
END $$;
