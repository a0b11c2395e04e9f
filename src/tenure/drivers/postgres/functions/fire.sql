-- Lets instants of schedules pass, and stores the jobs of those that nobody had let pass.
-- In: as pass_ticks.sql; then the jobs as in enqueue_unique.sql, with the id NULL for none. Now, or
--     NULL for the server's.
-- Out: one answer for each, as in `Fired`.
-- Rows of schedules are locked before all that storing jobs locks, and by nobody after it. A job that
-- is known, or kept out by its unique key, is not stored, and that is all. For a key that an open
-- transaction has in doubt it waits a moment and fails: the schedule is locked meanwhile.
CREATE OR REPLACE FUNCTION {schema}.fire(
    p_schedules text[], p_revisions text[], p_previous timestamptz[], p_instants timestamptz[],
    p_ids text[], p_names text[], p_queues text[], p_payloads bytea[], p_delays double precision[],
    p_ats timestamptz[], p_priorities integer[], p_max_attempts integer[],
    p_timeouts double precision[], p_headers text[], p_contents bytea[], p_keys text[],
    p_untils text[], p_modes text[], p_periods double precision[], p_max_waits double precision[],
    p_limits text[], p_now timestamptz
) RETURNS text[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_answers text[] := {schema}.pass_ticks(
        p_schedules, p_revisions, p_previous, p_instants, v_now
    );
    v_ids text[];  -- of the jobs to store; of an id that comes twice, the first
BEGIN
    SELECT array_agg(CASE WHEN n.place = n.first THEN n.id END ORDER BY n.place) INTO v_ids
    FROM (
        SELECT t.id, t.place, min(t.place) FILTER (WHERE t.answer = 'fired') OVER (PARTITION BY t.id)
        FROM unnest(p_ids, v_answers) WITH ORDINALITY AS t (id, answer, place)
    ) AS n (id, place, first);
    IF cardinality(array_remove(v_ids, NULL)) > 0 THEN
        IF cardinality(array_remove(p_keys, NULL)) > 0 THEN
            PERFORM set_config('lock_timeout', '250ms', true);
        END IF;
        PERFORM {schema}.enqueue_unique(
            v_ids, p_names, p_queues, p_payloads, p_delays, p_ats, p_priorities, p_max_attempts,
            p_timeouts, p_headers, p_contents, p_keys, p_untils, p_modes, p_periods, p_max_waits,
            p_limits, false, v_now
        );
    END IF;
    RETURN v_answers;
END $$;
