-- Makes jobs whose lease has run out pending again, longest ago first. Where it is restricted to holds,
-- also those that end later than their whole lease from now: the clock was set back since.
-- In: how many at most; the delays by stalls before, the last for all later ones; the holds to
--     restrict to, as three arrays, or NULLs; now or NULL for the server's.
-- Out: the holds that this ended.
-- Each goes into the history of its job. Rows that somebody else has locked are about to be settled or extended: skipped.
CREATE OR REPLACE FUNCTION {schema}.reclaim(
    p_limit integer, p_delays double precision[], p_ids text[], p_serials bigint[],
    p_tokens text[], p_now timestamptz
) RETURNS TABLE (id text, serial bigint, token text) LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_job record;
BEGIN
    FOR v_job IN
        SELECT j.* FROM {schema}.jobs AS j
        WHERE j.state = 2
            AND (j.lease_until <= v_now
                OR (p_ids IS NOT NULL AND {schema}.ends_ahead(j.lease_until, j.lease, v_now)))
            AND (p_ids IS NULL OR (
                j.serial = p_serials[array_position(p_ids, j.id)]
                AND j.token = p_tokens[array_position(p_ids, j.id)]
            ))
        ORDER BY j.lease_until, j.seq
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    LOOP
        UPDATE {schema}.jobs AS j
        SET state = 0,
            serial = least(v_job.serial, 9223372036854775806) + 1,
            stalls = least(v_job.stalls, 2147483646) + 1,
            run_at = v_now
                + p_delays[least(v_job.stalls, cardinality(p_delays) - 1) + 1] * interval '1 second',
            token = NULL, worker = NULL, claimed_at = NULL, lease = NULL, lease_until = NULL,
            updated_at = v_now
        WHERE j.seq = v_job.seq;
        PERFORM {schema}.remember(ARRAY[ROW(
            NULL, v_job.seq, v_job.serial, coalesce(v_job.claimed_at, v_now), v_now, v_job.attempt,
            v_job.worker, '{"outcome":"stalled","kind":"stalled","message":""}'
        )::{schema}.history]);
        IF v_job.lane IS NOT NULL THEN
            PERFORM {schema}.mark_ended(ARRAY[v_job.seq]);
        END IF;
        id := v_job.id;
        serial := v_job.serial;
        token := v_job.token;
        RETURN NEXT;
    END LOOP;
END $$;
