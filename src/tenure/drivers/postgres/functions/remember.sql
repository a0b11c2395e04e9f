-- Adds attempts that have ended to the histories of their jobs, of which the newest 100 are kept.
-- In: the rows, their seq not given; the rows of the jobs are locked by this transaction.
-- A serial is never less than the number of attempts before it, so that the first hundred look for
-- nothing to drop.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.remember(p_past {schema}.history[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO {schema}.history (job, serial, started_at, ended_at, attempt, worker, how)
    SELECT p.job, p.serial, p.started_at, p.ended_at, p.attempt, p.worker, p.how
    FROM unnest(p_past) AS p;
    DELETE FROM {schema}.history WHERE seq = ANY (ARRAY(
        SELECT surplus.seq
        FROM unnest(p_past) AS p
        CROSS JOIN LATERAL (
            SELECT h.seq FROM {schema}.history AS h WHERE h.job = p.job
            ORDER BY h.job DESC, h.seq DESC
            OFFSET 100
        ) AS surplus
        WHERE p.serial > 100
    ));
END $$;
