-- Does to waiting holders of unique keys what the modes of the jobs say that were kept out by them.
-- In: columns of the new jobs as in enqueue_unique.sql, who kept each out (NULL: nobody), now.
-- The holders that existed before are locked (lock_holders.sql); one by one in the order of arrival,
-- since several may change the same.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.change_holders(
    p_names text[], p_payloads bytea[], p_delays double precision[], p_ats timestamptz[],
    p_modes text[], p_max_waits double precision[], p_holders text[], p_now timestamptz
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_due timestamptz;
    v_seq bigint;
    v_limited boolean;
BEGIN
    FOR i IN 1 .. cardinality(p_holders) LOOP
        CONTINUE WHEN p_holders[i] IS NULL OR p_modes[i] NOT IN ('replace', 'debounce');
        v_due := coalesce(p_ats[i], p_now + coalesce(p_delays[i], 0) * interval '1 second');
        UPDATE {schema}.jobs AS j
        SET payload = CASE p_modes[i] WHEN 'replace' THEN p_payloads[i] ELSE j.payload END,
            run_at = (
                SELECT CASE p_modes[i] WHEN 'replace' THEN d.due ELSE greatest(j.run_at, d.due) END
                FROM (
                    -- Without a max_wait this is v_due: NULL is nothing to `least`.
                    SELECT least(v_due, j.created_at + p_max_waits[i] * interval '1 second')
                ) AS d (due)
            ),
            kept = j.lane IS NOT NULL,
            updated_at = p_now
        WHERE j.id = p_holders[i] AND j.name = p_names[i] AND j.state < 2
        RETURNING j.seq, j.lane IS NOT NULL INTO v_seq, v_limited;
        IF v_limited THEN
            PERFORM {schema}.mark_lanes(ARRAY[v_seq]);
        END IF;
    END LOOP;
END $$;
