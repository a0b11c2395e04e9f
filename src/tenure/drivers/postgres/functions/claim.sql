-- Takes due jobs for one attempt each, in the order of claims (I11).
-- In: the queues in the order to try with how many of each, how many in all, the token, the worker,
--     the lease, how many bytes of payload, now or NULL for the server's. Then heads, one array for each
--     column: at this place of that queue and priority, and below it, there is nothing to look for
--     (heads.py); NULLs for none.
-- Out: the jobs as they are now. RETURNING has no order: the caller sorts.
-- Each queue is read priority by priority, so that jobs due later at a better priority cost one
-- probe instead of being read past. Jobs that others are about to claim or write are skipped. An
-- empty claim writes nothing. Unique keys are touched only for jobs whose start gives theirs back.
-- Jobs are taken all at once where nothing is to be said of any of them: no limits, no key to give back,
-- and all fit. Else one by one, from the same place on.
-- Jobs with limits are looked at one by one, under the right of hold_limits.sql. What then follows
-- stands after the job's place, where the reading goes on, or before it, and the queue is read anew.
-- Heads are passed over where a queue has lanes: a claim may let a job of one stand below them.
-- A lane whose head should have been met, but was not, has it locked by somebody: another job then
-- stands for it (examine.sql).
CREATE OR REPLACE FUNCTION {schema}.claim(
    p_queues text[], p_limits integer[], p_limit integer, p_token text, p_worker text,
    p_lease double precision, p_max_bytes bigint, p_now timestamptz,
    p_head_queues text[] DEFAULT NULL, p_head_priorities integer[] DEFAULT NULL,
    p_head_ats timestamptz[] DEFAULT NULL, p_head_seqs bigint[] DEFAULT NULL
) RETURNS SETOF {schema}.jobs LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_left integer := p_limit;
    v_bytes bigint := p_max_bytes;
    v_taken bigint[] := '{}';
    v_paused text[];  -- of the queues
    v_seqs bigint[];  -- jobs that may be taken together, their size, and whether there is more to it
    v_size bigint;
    v_own boolean;
    v_keys text[] := '{}';  -- those that the start gives back, and whose they are
    v_key_ids text[] := '{}';
    v_room integer;
    v_priority integer;
    v_heads boolean := false;
    v_head integer := -2147483648;  -- the next lower priority that has a head, and that
    v_head_at timestamptz := '-infinity';
    v_head_seq bigint := 0;
    v_at timestamptz;  -- the place after which a priority is read
    v_seq bigint;
    v_looks integer := 0;  -- at jobs that a limit holds back: bounded
    v_may boolean;  -- whether limits are ours to look at; NULL until it is asked for
    v_full text;
    v_met boolean;
    v_anew boolean;
    v_missed boolean;
    v_job record;
BEGIN
    SELECT
        EXISTS (SELECT FROM {schema}.marks WHERE id > 0) OR EXISTS (
            SELECT FROM {schema}.holds
            WHERE free_at <= v_now OR free_at > v_now + interval '2 seconds'
        ) OR EXISTS (
            SELECT FROM unnest(p_queues) AS asked (queue)
            WHERE CASE WHEN EXISTS (
                SELECT FROM {schema}.lanes AS l
                WHERE l.queue = asked.queue AND l.parked IS NULL AND l.head_at <= v_now
            ) THEN {schema}.near(asked.queue, p_limit, v_now) END
        ),
        ARRAY(SELECT queue FROM {schema}.paused WHERE queue = ANY (p_queues))
    INTO v_anew, v_paused;
    IF v_anew THEN
        v_may := {schema}.hold_limits();
        IF v_may THEN
            PERFORM {schema}.look_again(v_now);
        END IF;
    END IF;

    IF p_head_queues IS NOT NULL THEN
        v_heads := NOT EXISTS (SELECT FROM {schema}.lanes WHERE queue = ANY (p_queues));
    END IF;

    <<queues>>
    FOR q IN 1 .. cardinality(p_queues) LOOP
        v_room := p_limits[q];
        CONTINUE WHEN p_queues[q] = ANY (v_paused);
        v_missed := false;
        v_anew := false;
        v_priority := 2147483647;
        LOOP
            EXIT queues WHEN v_left <= 0;
            EXIT WHEN v_room <= 0;
            IF v_heads AND NOT v_anew THEN
                SELECT h.priority, h.at, h.seq INTO v_head, v_head_at, v_head_seq
                FROM unnest(p_head_queues, p_head_priorities, p_head_ats, p_head_seqs)
                    AS h (queue, priority, at, seq)
                WHERE v_may IS NULL AND h.queue = p_queues[q] AND h.priority < v_priority
                ORDER BY h.priority DESC
                LIMIT 1;
                IF NOT FOUND THEN
                    v_head := -2147483648;
                    v_head_at := '-infinity';
                    v_head_seq := 0;
                END IF;
            END IF;
            IF NOT v_anew THEN
                v_priority := (
                    SELECT j.priority FROM {schema}.jobs AS j
                    WHERE j.state = 0 AND NOT j.kept AND j.queue = p_queues[q]
                        AND j.priority < v_priority
                        AND (j.priority, j.run_at, j.seq) > (v_head, v_head_at, v_head_seq)
                    ORDER BY j.queue DESC, j.priority DESC, j.run_at DESC, j.seq DESC
                    LIMIT 1
                );  -- as priority_below.sql, without the cost of a call
            END IF;
            IF v_priority IS NULL AND v_head > -2147483648 THEN
                v_priority := v_head;  -- below it
                CONTINUE;
            END IF;
            IF v_priority IS NULL THEN
                EXIT WHEN v_missed OR NOT EXISTS (
                    SELECT FROM {schema}.lanes
                    WHERE queue = p_queues[q] AND parked IS NULL AND head_at <= v_now
                );
                v_may := coalesce(v_may, {schema}.hold_limits());
                EXIT WHEN NOT v_may;
                v_missed := true;
                v_anew := true;
                PERFORM {schema}.stand_in(p_queues[q], v_now);
            END IF;
            IF v_anew THEN
                UPDATE {schema}.jobs SET state = 2 WHERE seq = ANY (v_taken) AND state = 0;
                v_anew := false;
                v_priority := 2147483647;
                CONTINUE;
            END IF;
            IF v_priority = v_head THEN
                v_at := v_head_at;
                v_seq := v_head_seq;
            ELSE
                v_at := '-infinity';
                v_seq := 0;
            END IF;
            IF v_may IS NULL THEN
                SELECT array_agg(f.seq), sum(f.size), bool_or(f.own) INTO v_seqs, v_size, v_own
                FROM (
                    SELECT
                        j.seq, octet_length(j.payload) AS size,
                        j.lane IS NOT NULL OR j.key_until = 'started' AS own
                    FROM {schema}.jobs AS j
                    WHERE j.state = 0 AND NOT j.kept AND j.queue = p_queues[q]
                        AND j.priority = v_priority AND j.run_at <= v_now
                        AND (j.run_at, j.seq) > (v_at, v_seq)
                    ORDER BY j.run_at, j.seq
                    LIMIT least(v_room, v_left)
                    FOR UPDATE SKIP LOCKED
                ) AS f;
                CONTINUE WHEN v_seqs IS NULL;
                IF v_own IS NOT TRUE AND v_size <= v_bytes THEN
                    v_taken := v_taken || v_seqs;
                    v_bytes := v_bytes - v_size;
                    v_left := v_left - cardinality(v_seqs);
                    v_room := v_room - cardinality(v_seqs);
                    CONTINUE;
                END IF;
            END IF;
            LOOP
                v_met := false;
                FOR v_job IN
                    SELECT
                        j.seq, octet_length(j.payload) AS size, j.id,
                        CASE j.key_until WHEN 'started' THEN j.key END AS key,
                        j.run_at, j.lane, j.limits
                    FROM {schema}.jobs AS j
                    WHERE j.state = 0 AND NOT j.kept AND j.queue = p_queues[q]
                        AND j.priority = v_priority AND j.run_at <= v_now
                        AND (j.run_at, j.seq) > (v_at, v_seq)
                    ORDER BY j.run_at, j.seq
                    LIMIT least(v_room, v_left)
                    FOR UPDATE SKIP LOCKED
                LOOP
                    IF v_job.lane IS NOT NULL THEN
                        v_may := coalesce(v_may, {schema}.hold_limits());
                        v_met := true;
                        v_full := CASE WHEN v_may THEN ({schema}.full_key(v_job.limits, v_now)).key END;
                        EXIT WHEN NOT v_may OR v_full IS NOT NULL;
                    END IF;
                    v_bytes := v_bytes - v_job.size;
                    EXIT queues WHEN v_bytes < 0 AND v_taken <> '{}';  -- the first always fits
                    v_taken := v_taken || v_job.seq;
                    v_left := v_left - 1;
                    v_room := v_room - 1;
                    IF v_job.key IS NOT NULL THEN
                        v_keys := v_keys || v_job.key;
                        v_key_ids := v_key_ids || v_job.id;
                    END IF;
                    EXIT WHEN v_met;
                END LOOP;
                EXIT WHEN NOT v_met;
                v_at := v_job.run_at;
                v_seq := v_job.seq;
                CONTINUE WHEN NOT v_may;
                v_anew := {schema}.advance(v_job.seq, v_full, v_now);
                v_looks := v_looks + (v_full IS NOT NULL)::integer;
                IF v_looks >= 300 THEN
                    INSERT INTO {schema}.marks DEFAULT VALUES;
                    EXIT queues;
                END IF;
                EXIT queues WHEN v_left <= 0;
                EXIT WHEN v_anew OR v_room <= 0;
            END LOOP;
        END LOOP;
    END LOOP;

    IF v_keys <> '{}' THEN
        PERFORM {schema}.free(v_keys, v_key_ids);
    END IF;
    IF v_taken <> '{}' THEN
        RETURN QUERY UPDATE {schema}.jobs AS j
        SET state = 2,
            -- Counters stop short of overflowing: one such row would fail the claim of all others.
            serial = least(j.serial, 9223372036854775806) + 1,
            attempt = least(j.attempt, 2147483646) + 1,
            token = p_token,
            worker = p_worker,
            claimed_at = v_now,
            lease = p_lease,
            lease_until = v_now + p_lease * interval '1 second',
            updated_at = v_now
        WHERE j.seq = ANY (v_taken)
        RETURNING j.*;
    END IF;
END $$;
