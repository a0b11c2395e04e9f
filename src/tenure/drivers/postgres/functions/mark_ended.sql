-- Notes for the next claim that holds of jobs with limits have ended, and which of the jobs wait again.
-- In: seqs of the jobs, as this transaction has written them.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.mark_ended(p_seqs bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO {schema}.marks (key, n)
    SELECT k, count(DISTINCT j.seq) FROM {schema}.jobs AS j CROSS JOIN LATERAL unnest(j.limits) AS k
    WHERE j.seq = ANY (p_seqs) AND k IS NOT NULL
    GROUP BY k;
    PERFORM {schema}.mark_lanes(p_seqs);
END $$;
