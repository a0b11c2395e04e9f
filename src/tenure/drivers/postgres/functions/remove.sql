-- Deletes jobs that are not processing, and remembers their ids for a minute. Their keys are
-- free, their histories gone; a job that was completed by its first claim has none.
-- In: seqs of rows that this transaction has locked, now. Out: how many.
-- A minute is twice as long as a dispatch is repeated.
CREATE OR REPLACE FUNCTION {schema}.remove(p_seqs bigint[], p_now timestamptz)
RETURNS integer LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_count integer;
    v_keys text[];  -- and whose they are; NULL for none
    v_key_ids text[];
    v_tried bigint[];  -- those that may have a history; NULL for none
BEGIN
    WITH removed AS (
        DELETE FROM {schema}.jobs WHERE seq = ANY (p_seqs) AND state <> 2
        RETURNING seq, id, content, queue, state, key, serial, priority, lane,
            CASE WHEN state = 3 THEN octet_length(payload)::bigint
                + coalesce(octet_length(result), 0) ELSE 0 END AS size
    ), remembered AS (
        INSERT INTO {schema}.gone (id, content, until)
        SELECT r.id, r.content, p_now + interval '1 minute' FROM removed AS r
        ON CONFLICT (id) DO UPDATE SET content = excluded.content, until = excluded.until
    ), counted AS (
        INSERT INTO {schema}.differences (queue, state, n, bytes)
        SELECT r.queue, r.state, -count(*), -sum(r.size) FROM removed AS r WHERE r.state >= 3
        GROUP BY r.queue, r.state
    ), marked AS (
        INSERT INTO {schema}.marks (queue, priority, lane)
        SELECT DISTINCT r.queue, r.priority, r.lane FROM removed AS r
        WHERE r.lane IS NOT NULL AND r.state = 0
    )
    SELECT
        count(*),
        array_agg(r.key) FILTER (WHERE r.key IS NOT NULL),
        array_agg(r.id) FILTER (WHERE r.key IS NOT NULL),
        array_agg(r.seq) FILTER (WHERE r.serial > 1 OR (r.serial = 1 AND r.state <> 3))
    INTO v_count, v_keys, v_key_ids, v_tried
    FROM removed AS r;

    IF v_keys IS NOT NULL THEN
        PERFORM {schema}.free(v_keys, v_key_ids);
    END IF;
    IF v_tried IS NOT NULL THEN
        DELETE FROM {schema}.history WHERE job = ANY (v_tried);
    END IF;
    RETURN v_count;
END $$;
