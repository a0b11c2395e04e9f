-- Settles holds, each where it is current.
-- In: one array for each column, equally long, no id twice, in the order of ids byte by byte: the holds;
--     the state that the outcome leads to; the starts it gives back (0 or 1); whether it clears the
--     stalls; its delay (NULL: the job keeps its due time); its error, its result, its name. Where all
--     outcomes are completions, only holds, results and names, or NULL for these where all are plain.
--     Then, for those that belong in the history of their job, its id and how the attempt ended; NULLs
--     where there are none. Now, or NULL for the server's.
-- Out: NULL where all were applied, else for each item 0 applied, 1 repeated, 2 fenced, 3 unknown; and
--      whether any of the jobs has limits, so that others may have become claimable.
-- The place of a job in the arrays is found by halving. A join with unnest() would be walked over the
-- index of the running jobs, which the planner takes for nearly empty: quadratic. So is
-- array_position(), which took three quarters of the time at 256 outcomes; to build a jsonb of the
-- places and ask it took a quarter at 64. The id at the place is compared too: a database may be in an
-- encoding that has another order, and then the batch is refused, but never a single hold.
-- Rows are found, and so locked, in the order of ids: two batches never wait for each other
-- crosswise.
CREATE OR REPLACE FUNCTION {schema}.record(
    p_ids text[], p_serials bigint[], p_tokens text[], p_states smallint[], p_back smallint[],
    p_clears boolean[], p_delays double precision[], p_errors text[], p_results bytea[],
    p_names text[], p_tried_ids text[], p_tried text[], p_now timestamptz,
    OUT answers smallint[], OUT freed boolean
) LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_applied text[];
    v_keys text[];  -- those of jobs that have ended, and whose they are; NULL for none
    v_key_ids text[];
    v_past {schema}.history[];
    v_limited bigint[];  -- jobs with limits; NULL for none
BEGIN
    IF p_tried_ids IS NOT NULL THEN
        -- Looked at before: who made a hold, and when, is gone with it. As long as the hold is
        -- current, none of that changes.
        v_past := ARRAY(
            SELECT ROW(
                NULL, j.seq, j.serial, coalesce(j.claimed_at, v_now), v_now, j.attempt, j.worker,
                n.how
            )::{schema}.history
            FROM unnest(p_tried_ids, p_tried) AS n (id, how)
            JOIN {schema}.jobs AS j ON j.id = n.id
            WHERE j.id = p_ids[width_bucket(j.id, p_ids)]
                AND j.serial = p_serials[width_bucket(j.id, p_ids)]
                AND j.token = p_tokens[width_bucket(j.id, p_ids)]
        );
    END IF;

    IF p_states IS NULL THEN
        SELECT c.applied, c.keys, c.key_ids, c.limited
        INTO v_applied, v_keys, v_key_ids, v_limited
        FROM {schema}.complete(p_ids, p_serials, p_tokens, p_results, p_names, v_now) AS c;
    ELSE
        WITH settled AS (
            UPDATE {schema}.jobs AS j
            SET (state, attempt, stalls, run_at, finished_at, error, result, settled_outcome) = (
                    SELECT
                        to_be.state,
                        j.attempt - p_back[i],
                        CASE WHEN to_be.state < 3 AND NOT p_clears[i] THEN j.stalls ELSE 0 END,
                        CASE WHEN to_be.state < 3 AND p_delays[i] IS NOT NULL
                            THEN v_now + p_delays[i] * interval '1 second' ELSE j.run_at END,
                        CASE WHEN to_be.state >= 3 THEN v_now END,
                        CASE p_states[i] WHEN 3 THEN NULL ELSE coalesce(p_errors[i], j.error) END,
                        CASE p_states[i] WHEN 3 THEN p_results[i] ELSE j.result END,
                        p_names[i]
                    FROM (SELECT width_bucket(j.id, p_ids)) AS place (i)
                    CROSS JOIN LATERAL (
                        -- A job that was asked to cancel does not go back to waiting.
                        SELECT CASE WHEN p_states[i] = 0 AND j.cancel_requested
                            THEN 5::smallint ELSE p_states[i] END
                    ) AS to_be (state)
                ),
                settled_serial = j.serial,
                settled_token = j.token,
                token = NULL, worker = NULL, claimed_at = NULL, lease = NULL, lease_until = NULL,
                cancel_requested = false,
                updated_at = v_now
            WHERE j.id = ANY (p_ids)
                AND j.id = p_ids[width_bucket(j.id, p_ids)]
                AND j.serial = p_serials[width_bucket(j.id, p_ids)]
                AND j.token = p_tokens[width_bucket(j.id, p_ids)]
            RETURNING
                j.id, j.queue, j.state, CASE WHEN j.state >= 3 THEN j.key END AS key,
                CASE WHEN j.lane IS NOT NULL THEN j.seq END AS limited,
                -- What the head of a value says of its length; a large one is not fetched.
                CASE WHEN j.state = 3 THEN octet_length(j.payload)::bigint
                    + coalesce(octet_length(j.result), 0) ELSE 0 END AS size
        ), counted AS (
            INSERT INTO {schema}.differences (queue, state, n, bytes)
            SELECT s.queue, s.state, count(*), sum(s.size) FROM settled AS s WHERE s.state >= 3
            GROUP BY s.queue, s.state
        )
        SELECT
            array_agg(s.id),
            array_agg(s.key) FILTER (WHERE s.key IS NOT NULL),
            array_agg(s.id) FILTER (WHERE s.key IS NOT NULL),
            array_agg(s.limited) FILTER (WHERE s.limited IS NOT NULL)
        INTO v_applied, v_keys, v_key_ids, v_limited
        FROM settled AS s;
    END IF;
    freed := v_limited IS NOT NULL;

    IF v_keys IS NOT NULL THEN
        PERFORM {schema}.free(v_keys, v_key_ids);
    END IF;
    IF freed THEN
        PERFORM {schema}.mark_ended(v_limited);
    END IF;
    IF cardinality(v_past) > 0 THEN
        PERFORM {schema}.remember(ARRAY(
            SELECT p FROM unnest(v_past) AS p
            WHERE EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.seq = p.job AND j.id = ANY (v_applied))
        ));
    END IF;

    IF cardinality(v_applied) = cardinality(p_ids) THEN
        RETURN;
    END IF;
    answers := (
        SELECT array_agg(
            CASE
                WHEN n.id = ANY (v_applied) THEN 0
                WHEN j.id IS NULL THEN 3
                WHEN (j.serial, j.token) = (n.serial, n.token) THEN NULL
                WHEN (j.settled_serial, j.settled_token, j.settled_outcome)
                    = (n.serial, n.token, coalesce(n.name, 'completed')) THEN 1
                ELSE 2
            END::smallint ORDER BY n.place
        )
        FROM unnest(p_ids, p_serials, p_tokens, p_names)
            WITH ORDINALITY AS n (id, serial, token, name, place)
        LEFT JOIN LATERAL (SELECT * FROM {schema}.jobs WHERE id = n.id OFFSET 0) AS j ON true
    );
    IF array_position(answers, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'the ids are not in the order of this database: record them one by one';
    END IF;
END $$;
