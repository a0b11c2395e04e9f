-- Stores new jobs of which some have unique keys, each where its key is free; else does to the
-- waiting holder what the mode says.
-- In: as enqueue.sql; for each job its key, until when the job holds it, its mode, period and longest
--     wait (`UniqueKey`; NULLs without one); its limits, as in enqueue.sql; whether all are kept out where one has an id that is
--     known with other content, or that one alone. An id that is NULL stands for no job; no other
--     comes twice.
-- Out: for each job whether its id is known, with other content (true) or the same (false), NULL for
--      a new one; and the id of the job that holds its key, where it is kept out by that.
-- It means what one by one means. Ids are judged first, then keys are taken in their order, each by
-- the first of its jobs, then rows of holders are locked in the order of ids: whoever takes keys keeps
-- this order, and who frees them waits for none, so that nobody waits crosswise. A look that was
-- overtaken before its lock was to be had is undone, locks and all, and taken again.
CREATE OR REPLACE FUNCTION {schema}.enqueue_unique(
    p_ids text[], p_names text[], p_queues text[], p_payloads bytea[], p_delays double precision[],
    p_ats timestamptz[], p_priorities integer[], p_max_attempts integer[],
    p_timeouts double precision[], p_headers text[], p_contents bytea[], p_keys text[],
    p_untils text[], p_modes text[], p_periods double precision[], p_max_waits double precision[],
    p_limits text[], p_together boolean, p_now timestamptz, OUT others boolean[], OUT holders text[]
) LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_keys text[];
    v_key_holders text[];
    v_held jsonb;  -- key to holder
    v_changes boolean;
    v_each record;
    v_holder text;
    v_stored text[];
    v_seqs bigint[];
BEGIN
    LOOP
        BEGIN
            SELECT array_agg(known.content <> n.content ORDER BY n.place) INTO others
            FROM unnest(p_ids, p_contents) WITH ORDINALITY AS n (id, content, place)
            CROSS JOIN LATERAL (
                SELECT coalesce(
                    (SELECT g.content FROM {schema}.gone AS g WHERE g.id = n.id AND g.until > v_now),
                    (SELECT j.content FROM {schema}.jobs AS j WHERE j.id = n.id)
                ) AS content
            ) AS known;

            IF p_together AND true = ANY (others) THEN
                SELECT array_agg(
                    CASE WHEN n.other IS NULL THEN (
                        SELECT k.job_id FROM {schema}.keys AS k
                        WHERE k.key = n.key AND (k.until IS NULL OR k.until > v_now)
                    ) END ORDER BY n.place
                ) INTO holders
                FROM unnest(p_keys, others) WITH ORDINALITY AS n (key, other, place);
                RETURN;
            END IF;

            v_keys := '{}';
            v_key_holders := '{}';
            FOR v_each IN
                SELECT n.key, min(n.place)::integer AS place
                FROM unnest(p_ids, p_keys, others) WITH ORDINALITY AS n (id, key, other, place)
                WHERE n.id IS NOT NULL AND n.key IS NOT NULL AND n.other IS NULL
                GROUP BY n.key
                ORDER BY n.key
            LOOP
                v_holder := {schema}.take(
                    v_each.key, p_ids[v_each.place],
                    v_now + p_periods[v_each.place] * interval '1 second',
                    p_modes[v_each.place] = 'throttle', v_now
                );
                v_keys := v_keys || v_each.key;
                v_key_holders := v_key_holders || coalesce(v_holder, p_ids[v_each.place]);
            END LOOP;
            v_held := jsonb_object(v_keys, v_key_holders);

            SELECT
                array_agg(held.by ORDER BY n.place),
                coalesce(bool_or(held.by IS NOT NULL AND n.mode IN ('replace', 'debounce')), false)
            INTO holders, v_changes
            FROM unnest(p_ids, p_keys, p_modes, others)
                WITH ORDINALITY AS n (id, key, mode, other, place)
            CROSS JOIN LATERAL (
                SELECT CASE WHEN n.other IS NULL AND n.id IS NOT NULL
                    THEN nullif(v_held ->> n.key, n.id) END AS by
            ) AS held;

            IF v_changes AND NOT {schema}.lock_holders(p_names, p_keys, p_modes, holders) THEN
                RAISE EXCEPTION USING ERRCODE = 'TN001';
            END IF;

            WITH stored AS (
                INSERT INTO {schema}.jobs (
                    id, name, queue, payload, run_at, priority, max_attempts, timeout, headers,
                    content, key, key_until, key_mode, key_period, key_max_wait, limits,
                    lane, kept, created_at, updated_at
                )
                SELECT
                    n.id, n.name, n.queue, n.payload,
                    coalesce(n.at, v_now + coalesce(n.delay, 0) * interval '1 second'),
                    n.priority, n.max_attempts, n.timeout, n.headers, n.content, n.key, n.until,
                    n.mode, n.period, n.max_wait,
                    n.limits::text[], md5(n.limits)::uuid, n.limits IS NOT NULL, v_now, v_now
                FROM unnest(
                    p_ids, p_names, p_queues, p_payloads, p_delays, p_ats, p_priorities,
                    p_max_attempts, p_timeouts, p_headers, p_contents, p_keys, p_untils, p_modes,
                    p_periods, p_max_waits, p_limits, others, holders
                ) WITH ORDINALITY AS n (
                    id, name, queue, payload, delay, at, priority, max_attempts, timeout, headers,
                    content, key, until, mode, period, max_wait, limits, other, holder, place
                )
                WHERE n.id IS NOT NULL AND n.other IS NULL AND n.holder IS NULL
                ORDER BY n.place
                ON CONFLICT (id) DO NOTHING
                RETURNING id, seq
            )
            SELECT coalesce(array_agg(id), '{}'), array_agg(seq) INTO v_stored, v_seqs FROM stored;

            -- Somebody has stored such an id, or even deleted it, since it was looked for.
            IF cardinality(v_stored) < (
                SELECT count(*) FROM unnest(p_ids, others, holders) AS n (id, other, holder)
                WHERE n.id IS NOT NULL AND n.other IS NULL AND n.holder IS NULL
            ) OR EXISTS (
                SELECT FROM {schema}.gone WHERE id = ANY (v_stored) AND until > v_now
            ) THEN
                RAISE EXCEPTION USING ERRCODE = 'TN001';
            END IF;

            IF p_limits IS NOT NULL THEN
                PERFORM {schema}.mark_lanes(v_seqs);
            END IF;
            IF v_changes THEN
                PERFORM {schema}.change_holders(
                    p_names, p_payloads, p_delays, p_ats, p_modes, p_max_waits, holders, v_now
                );
            END IF;
            RETURN;
        EXCEPTION WHEN SQLSTATE 'TN001' THEN
            NULL;
        END;
    END LOOP;
END $$;
