-- Settles holds of jobs that have completed, each where it is current.
-- In: the holds as one array for each part, in the order of ids; the results and the names of the
--     outcomes, NULL where all are plain completions; now.
-- Out: the ids of the jobs to which it applied; the keys of those that had one, and whose they are; the
--      seqs of those with limits; NULL for none.
-- Runs under the settings of the function that calls it, which says how places are looked up.
CREATE OR REPLACE FUNCTION {schema}.complete(
    p_ids text[], p_serials bigint[], p_tokens text[], p_results bytea[], p_names text[],
    p_now timestamptz, OUT applied text[], OUT keys text[], OUT key_ids text[], OUT limited bigint[]
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH settled AS (
        UPDATE {schema}.jobs AS j
        SET state = 3,
            stalls = 0,
            finished_at = p_now,
            error = NULL,
            result = p_results[width_bucket(j.id, p_ids)],
            settled_outcome = coalesce(p_names[width_bucket(j.id, p_ids)], 'completed'),
            settled_serial = j.serial,
            settled_token = j.token,
            token = NULL, worker = NULL, claimed_at = NULL, lease = NULL, lease_until = NULL,
            cancel_requested = false,
            updated_at = p_now
        WHERE j.id = ANY (p_ids)
            AND j.id = p_ids[width_bucket(j.id, p_ids)]
            AND j.serial = p_serials[width_bucket(j.id, p_ids)]
            AND j.token = p_tokens[width_bucket(j.id, p_ids)]
        RETURNING
            j.id, j.queue, j.key, CASE WHEN j.lane IS NOT NULL THEN j.seq END AS limited,
            -- What the head of a value says of its length; a large one is not fetched.
            octet_length(j.payload)::bigint + coalesce(octet_length(j.result), 0) AS size
    ), counted AS (
        INSERT INTO {schema}.differences (queue, state, n, bytes)
        SELECT s.queue, 3, count(*), sum(s.size) FROM settled AS s GROUP BY s.queue
    )
    SELECT
        array_agg(s.id),
        array_agg(s.key) FILTER (WHERE s.key IS NOT NULL),
        array_agg(s.id) FILTER (WHERE s.key IS NOT NULL),
        array_agg(s.limited) FILTER (WHERE s.limited IS NOT NULL)
    INTO applied, keys, key_ids, limited
    FROM settled AS s;
END $$;
