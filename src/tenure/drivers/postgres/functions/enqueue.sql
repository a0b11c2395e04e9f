-- Stores new jobs, all or none.
-- In: one array for each column, equally long, in the order of arrival; a job is due at `at`, or
--     `delay` seconds after now, or now. Names, queues and priorities may be one for all jobs; any other
--     column but those of ids, payloads and contents NULL where it is NULL for all. The keys in `limits`
--     as the text of an array. Now, or NULL for the server's.
-- Out: NULL where all is as asked: each job is stored, or was before with the same content. Else
--     for each job whether its id has other content, and nothing was stored.
-- Ids are nearly always new: they are stored without a look, which costs a fifth less than ON CONFLICT,
-- and only where that fails those that are there are left out. It stores first and then looks at the ids
-- that were deleted a moment ago: the other way round a delete that commits in between would be missed
-- and its job come back.
CREATE OR REPLACE FUNCTION {schema}.enqueue(
    p_ids text[], p_names text[], p_queues text[], p_payloads bytea[], p_delays double precision[],
    p_ats timestamptz[], p_priorities integer[], p_max_attempts integer[],
    p_timeouts double precision[], p_headers text[], p_contents bytea[], p_limits text[],
    p_now timestamptz
) RETURNS boolean[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_known text[] := '{}';
    v_left_out text[];
    v_stored bigint[];
    v_others boolean[];
BEGIN
    LOOP
        BEGIN
            INSERT INTO {schema}.jobs (
                id, name, queue, payload, run_at, priority, max_attempts, timeout, headers, content,
                limits, lane, kept, created_at, updated_at
            )
            SELECT
                n.id, coalesce(n.name, p_names[1]), coalesce(n.queue, p_queues[1]), n.payload,
                coalesce(n.at, v_now + coalesce(n.delay, 0) * interval '1 second'),
                coalesce(n.priority, p_priorities[1]), n.max_attempts, n.timeout, n.headers,
                n.content, n.limits::text[], md5(n.limits)::uuid, n.limits IS NOT NULL, v_now, v_now
            FROM unnest(
                p_ids, p_names, p_queues, p_payloads, p_delays, p_ats, p_priorities, p_max_attempts,
                p_timeouts, p_headers, p_contents, p_limits
            ) WITH ORDINALITY AS n (
                id, name, queue, payload, delay, at, priority, max_attempts, timeout, headers,
                content, limits, place
            )
            WHERE n.id <> ALL (v_known)
            ORDER BY n.place;
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            v_left_out := v_known;
            v_known := ARRAY(SELECT j.id FROM {schema}.jobs AS j WHERE j.id = ANY (p_ids));
            IF v_known = v_left_out THEN
                -- One that this transaction does not see: it is gone again, or came after its beginning.
                RAISE EXCEPTION 'an id was stored by somebody else' USING ERRCODE = '40001';
            END IF;
        END;
    END LOOP;
    IF p_limits IS NULL AND v_known = '{}' AND NOT EXISTS (
        SELECT FROM {schema}.gone WHERE id = ANY (p_ids) AND until > v_now
    ) THEN
        RETURN NULL;
    END IF;

    v_stored := ARRAY(
        SELECT j.seq FROM {schema}.jobs AS j WHERE j.id = ANY (p_ids) AND j.id <> ALL (v_known)
    );
    IF p_limits IS NOT NULL THEN
        PERFORM {schema}.mark_lanes(v_stored);
    END IF;

    SELECT array_agg(coalesce(known.content <> n.content, false) ORDER BY n.place) INTO v_others
    FROM unnest(p_ids, p_contents) WITH ORDINALITY AS n (id, content, place)
    CROSS JOIN LATERAL (
        SELECT coalesce(
            (SELECT g.content FROM {schema}.gone AS g WHERE g.id = n.id AND g.until > v_now),
            (SELECT j.content FROM {schema}.jobs AS j WHERE j.id = n.id)
        ) AS content
    ) AS known;

    IF true = ANY (v_others) THEN
        DELETE FROM {schema}.jobs WHERE seq = ANY (v_stored);
        RETURN v_others;
    END IF;
    DELETE FROM {schema}.jobs AS j
    WHERE j.seq = ANY (v_stored)
        AND EXISTS (SELECT FROM {schema}.gone AS g WHERE g.id = j.id AND g.until > v_now);
    RETURN NULL;
END $$;
