-- Notes for the next claim that jobs have begun to wait in their lanes, or have got another place.
-- In: seqs of jobs that this transaction has written; those that wait and have limits count.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.mark_lanes(p_seqs bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO {schema}.marks (queue, priority, lane)
    SELECT DISTINCT j.queue, j.priority, j.lane FROM {schema}.jobs AS j
    WHERE j.seq = ANY (p_seqs) AND j.state = 0 AND j.lane IS NOT NULL;
END $$;
