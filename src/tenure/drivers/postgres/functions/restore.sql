-- Stores whole jobs of another store, as they are given: all or none.
-- In: one array for each column of jobs, equally long, no id twice, in the order of arrival; the keys in
--     `limits` as the text of an array. Whether each holds its unique key, and until when (NULL: until it
--     ends). Then the attempts of their histories, one array for each column, the jobs by their ids. Now,
--     or NULL for the server's.
-- Out: for each job 0 stored, 1 known with the same content, 2 with other content, 3 kept out by the job
--      in holders, which holds its key. With a 2 or a 3 nothing was changed.
-- Ids are judged first, then keys are taken in their order, each by the first of its jobs; see
-- enqueue_unique.sql, also for what a look does that was overtaken.
CREATE OR REPLACE FUNCTION {schema}.restore(
    p_ids text[], p_names text[], p_queues text[], p_payloads bytea[], p_priorities integer[],
    p_max_attempts integer[], p_timeouts double precision[], p_headers text[], p_contents bytea[],
    p_states smallint[], p_attempts integer[], p_stalls integer[], p_serials bigint[],
    p_run_ats timestamptz[], p_created_ats timestamptz[], p_updated_ats timestamptz[],
    p_finished_ats timestamptz[], p_errors text[], p_results bytea[], p_progress bytea[],
    p_cancels boolean[], p_keys text[], p_untils text[], p_modes text[],
    p_periods double precision[], p_max_waits double precision[], p_limits text[],
    p_holds boolean[], p_held_untils timestamptz[], p_past_ids text[], p_past_serials bigint[],
    p_past_starts timestamptz[], p_past_ends timestamptz[], p_past_attempts integer[],
    p_past_workers text[], p_past_how text[], p_now timestamptz,
    OUT answers smallint[], OUT holders text[]
) LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_keys text[];
    v_key_holders text[];
    v_held jsonb;  -- key to holder
    v_each record;
    v_holder text;
    v_seqs bigint[];
BEGIN
    LOOP
        BEGIN
            SELECT array_agg(
                CASE WHEN known.content IS NULL THEN 0 WHEN known.content = n.content THEN 1
                    ELSE 2 END::smallint ORDER BY n.place
            ) INTO answers
            FROM unnest(p_ids, p_contents) WITH ORDINALITY AS n (id, content, place)
            CROSS JOIN LATERAL (
                SELECT coalesce(
                    (SELECT j.content FROM {schema}.jobs AS j WHERE j.id = n.id),
                    (SELECT g.content FROM {schema}.gone AS g WHERE g.id = n.id AND g.until > v_now)
                ) AS content
            ) AS known;

            v_keys := '{}';
            v_key_holders := '{}';
            FOR v_each IN
                SELECT n.key, min(n.place)::integer AS place
                FROM unnest(p_keys, p_holds, p_held_untils, answers)
                    WITH ORDINALITY AS n (key, holds, until, answer, place)
                WHERE n.holds AND n.answer = 0 AND (n.until IS NULL OR n.until > v_now)
                GROUP BY n.key
                ORDER BY n.key
            LOOP
                v_holder := {schema}.take(
                    v_each.key, p_ids[v_each.place], p_held_untils[v_each.place],
                    p_modes[v_each.place] = 'throttle', v_now
                );
                v_keys := v_keys || v_each.key;
                v_key_holders := v_key_holders || coalesce(v_holder, p_ids[v_each.place]);
            END LOOP;
            v_held := jsonb_object(v_keys, v_key_holders);

            SELECT
                array_agg(CASE WHEN held.by IS NULL THEN n.answer ELSE 3 END::smallint ORDER BY n.place),
                array_agg(held.by ORDER BY n.place)
            INTO answers, holders
            FROM unnest(p_ids, p_keys, p_holds, p_held_untils, answers)
                WITH ORDINALITY AS n (id, key, holds, until, answer, place)
            CROSS JOIN LATERAL (
                SELECT CASE WHEN n.holds AND n.answer = 0 AND (n.until IS NULL OR n.until > v_now)
                    THEN nullif(v_held ->> n.key, n.id) END AS by
            ) AS held;

            IF 2 = ANY (answers) OR 3 = ANY (answers) THEN
                RAISE EXCEPTION USING ERRCODE = 'TN002';  -- the keys that were taken are given back
            END IF;

            WITH stored AS (
                INSERT INTO {schema}.jobs (
                    id, name, queue, payload, priority, max_attempts, timeout, headers, content,
                    state, attempt, stalls, serial, run_at, created_at, updated_at, finished_at,
                    error, result, progress, cancel_requested, key, key_until, key_mode, key_period,
                    key_max_wait, limits, lane, kept
                )
                SELECT
                    n.id, n.name, n.queue, n.payload, n.priority, n.max_attempts, n.timeout,
                    n.headers, n.content, n.state, n.attempt, n.stalls, n.serial, n.run_at,
                    n.created_at, n.updated_at, n.finished_at, n.error, n.result, n.progress,
                    n.cancel, n.key, n.until, n.mode, n.period, n.max_wait,
                    n.limits::text[], md5(n.limits)::uuid, n.limits IS NOT NULL
                FROM unnest(
                    p_ids, p_names, p_queues, p_payloads, p_priorities, p_max_attempts, p_timeouts,
                    p_headers, p_contents, p_states, p_attempts, p_stalls, p_serials, p_run_ats,
                    p_created_ats, p_updated_ats, p_finished_ats, p_errors, p_results, p_progress,
                    p_cancels, p_keys, p_untils, p_modes, p_periods, p_max_waits, p_limits, answers
                ) WITH ORDINALITY AS n (
                    id, name, queue, payload, priority, max_attempts, timeout, headers, content,
                    state, attempt, stalls, serial, run_at, created_at, updated_at, finished_at,
                    error, result, progress, cancel, key, until, mode, period, max_wait, limits,
                    answer, place
                )
                WHERE n.answer = 0
                ORDER BY n.place
                ON CONFLICT (id) DO NOTHING
                RETURNING id, seq
            )
            SELECT array_agg(seq) INTO v_seqs FROM stored;

            -- Somebody has stored such an id, or even deleted it, since it was looked for.
            IF coalesce(cardinality(v_seqs), 0) < cardinality(array_positions(answers, 0::smallint))
                OR EXISTS (
                    SELECT FROM unnest(p_ids, answers) AS n (id, answer)
                    JOIN {schema}.gone AS g ON g.id = n.id
                    WHERE n.answer = 0 AND g.until > v_now
                )
            THEN
                RAISE EXCEPTION USING ERRCODE = 'TN001';
            END IF;

            IF p_past_ids IS NOT NULL THEN
                INSERT INTO {schema}.history (
                    job, serial, started_at, ended_at, attempt, worker, how
                )
                SELECT j.seq, n.serial, n.started_at, n.ended_at, n.attempt, n.worker, n.how
                FROM unnest(
                    p_past_ids, p_past_serials, p_past_starts, p_past_ends, p_past_attempts,
                    p_past_workers, p_past_how
                ) WITH ORDINALITY AS n (
                    id, serial, started_at, ended_at, attempt, worker, how, place
                )
                JOIN {schema}.jobs AS j ON j.id = n.id
                WHERE j.seq = ANY (v_seqs)
                ORDER BY n.place;
            END IF;
            IF p_limits IS NOT NULL THEN
                PERFORM {schema}.mark_lanes(v_seqs);
            END IF;
            INSERT INTO {schema}.differences (queue, state, n, bytes)
            SELECT
                j.queue, j.state, count(*),
                sum(CASE WHEN j.state = 3 THEN octet_length(j.payload)::bigint
                    + coalesce(octet_length(j.result), 0) ELSE 0 END)
            FROM {schema}.jobs AS j
            WHERE j.seq = ANY (v_seqs) AND j.state IN (1, 3, 4, 5)
            GROUP BY j.queue, j.state;
            RETURN;
        EXCEPTION
            WHEN SQLSTATE 'TN001' THEN
                NULL;
            WHEN SQLSTATE 'TN002' THEN
                RETURN;
        END;
    END LOOP;
END $$;
