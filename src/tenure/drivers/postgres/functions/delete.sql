-- Deletes jobs that are not processing.
-- In: ids, now or NULL for the server's. Out: one answer for each id, as in `Answer`.
-- Locks and judges as cancel.sql does.
CREATE OR REPLACE FUNCTION {schema}.delete(p_ids text[], p_now timestamptz)
RETURNS text[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_answers text[] := '{}';
    v_id text;
    v_seq bigint;
    v_state smallint;
BEGIN
    PERFORM FROM {schema}.jobs WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE;
    FOREACH v_id IN ARRAY p_ids LOOP
        SELECT seq, state INTO v_seq, v_state FROM {schema}.jobs WHERE id = v_id;
        IF NOT FOUND THEN
            v_answers := v_answers || 'unknown'::text;
        ELSIF v_state = 2 THEN
            v_answers := v_answers || 'running'::text;
        ELSE
            PERFORM {schema}.remove(ARRAY[v_seq], v_now);
            v_answers := v_answers || 'done'::text;
        END IF;
    END LOOP;
    RETURN v_answers;
END $$;
