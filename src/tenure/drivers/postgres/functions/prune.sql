-- Deletes finished jobs beyond their retention, those that ended first first.
-- In: the ages after which completed, failed and cancelled jobs go (NULL: never), how many
--     completed ones a queue keeps and how many bytes of them (NULL: all), how many to delete at
--     most, now or NULL for the server's. Out: how many were deleted.
-- A job that ended less than a minute ago stays. Rows that somebody else has locked are skipped, so
-- that several pruners share the work instead of waiting for each other. Also drops the traces of
-- deleted ids that are older than a minute, and unique keys whose time is over, and counts holds anew.
CREATE OR REPLACE FUNCTION {schema}.prune(
    p_completed double precision, p_failed double precision, p_cancelled double precision,
    p_completed_count bigint, p_completed_bytes bigint, p_limit integer, p_now timestamptz
) RETURNS integer LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_settled timestamptz := v_now - interval '1 minute';
    v_ages double precision[] := ARRAY[p_completed, p_failed, p_cancelled];
    v_left integer := p_limit;
    v_line record;
    v_removed integer;
BEGIN
    DELETE FROM {schema}.gone WHERE id = ANY (ARRAY(
        SELECT id FROM {schema}.gone WHERE until <= v_now LIMIT 10000 FOR UPDATE SKIP LOCKED
    ));
    DELETE FROM {schema}.keys WHERE key = ANY (ARRAY(
        SELECT key FROM {schema}.keys WHERE until <= v_now LIMIT 10000 FOR UPDATE SKIP LOCKED
    ));
    IF EXISTS (SELECT FROM {schema}.holds) OR EXISTS (SELECT FROM {schema}.claims) THEN
        PERFORM {schema}.mend_holds(v_now);
    END IF;
    FOR v_line IN SELECT * FROM {schema}.ended() LOOP
        EXIT WHEN v_left <= 0;
        v_removed := 0;
        IF v_ages[v_line.state - 2] IS NOT NULL THEN
            v_removed := {schema}.prune_line(
                v_line.queue, v_line.state,
                least(
                    v_now - v_ages[v_line.state - 2] * interval '1 second'
                        - interval '1 microsecond',
                    v_settled
                ),
                v_left, v_now
            );
            v_left := v_left - v_removed;
        END IF;
        IF v_line.state = 3 AND v_left > 0 AND (
            v_line.n - v_removed > p_completed_count OR v_line.bytes > p_completed_bytes
        ) THEN
            v_left := v_left - {schema}.prune_surplus(
                v_line.queue, p_completed_count, p_completed_bytes, v_settled, v_left, v_now
            );
        END IF;
    END LOOP;
    RETURN p_limit - v_left;
END $$;
