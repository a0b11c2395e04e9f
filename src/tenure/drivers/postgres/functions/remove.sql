-- Deletes jobs that are not processing, and remembers their ids for a minute.
-- In: seqs of rows that this transaction has locked, now. Out: how many.
-- A minute is twice as long as a dispatch is repeated.
CREATE OR REPLACE FUNCTION {schema}.remove(p_seqs bigint[], p_now timestamptz)
RETURNS integer LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_count integer;
BEGIN
    WITH removed AS (
        DELETE FROM {schema}.jobs WHERE seq = ANY (p_seqs) AND state <> 2
        RETURNING id, content, queue, state
    ), remembered AS (
        INSERT INTO {schema}.gone (id, content, until)
        SELECT r.id, r.content, p_now + interval '1 minute' FROM removed AS r
        ON CONFLICT (id) DO UPDATE SET content = excluded.content, until = excluded.until
    ), counted AS (
        INSERT INTO {schema}.differences (queue, state, n)
        SELECT r.queue, r.state, -count(*) FROM removed AS r WHERE r.state >= 3
        GROUP BY r.queue, r.state
    )
    SELECT count(*) INTO v_count FROM removed;
    RETURN v_count;
END $$;
