-- Lets instants of schedules pass, each where nobody has: compare-and-set of the last tick.
-- In: ids, revisions, the last ticks that the schedules must still have, the instants they get; now.
-- Out: one answer for each, as in `Fired`.
-- All rows are locked first, in the order of ids, so that two calls never wait crosswise. Then one by
-- one, since a schedule may come several times.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.pass_ticks(
    p_ids text[], p_revisions text[], p_previous timestamptz[], p_instants timestamptz[],
    p_now timestamptz
) RETURNS text[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_answers text[] := '{}';
    v_answer text;
BEGIN
    PERFORM FROM {schema}.schedules WHERE id = ANY (p_ids) ORDER BY id FOR UPDATE;
    FOR i IN 1 .. cardinality(p_ids) LOOP
        SELECT CASE WHEN p_instants[i] > p_now THEN 'early' ELSE 'fired' END INTO v_answer
        FROM {schema}.schedules
        WHERE id = p_ids[i] AND revision = p_revisions[i] AND last = p_previous[i] AND NOT paused;
        IF v_answer = 'fired' THEN
            UPDATE {schema}.schedules SET last = p_instants[i] WHERE id = p_ids[i];
        END IF;
        v_answers := v_answers || coalesce(v_answer, 'lost');
    END LOOP;
    RETURN v_answers;
END $$;
