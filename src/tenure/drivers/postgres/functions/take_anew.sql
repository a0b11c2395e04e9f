-- Takes the unique keys of jobs that are about to be retried, in the order of keys.
-- In: ids and serials as in retry.sql, now.
-- Out: the ids of the jobs that hold their keys now, the first that is asked for of each key; the keys
--      of all these jobs, which are not to be had for any other.
-- A throttle is not asked for its key.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.take_anew(
    p_ids text[], p_serials bigint[], p_now timestamptz, OUT takers text[], OUT held text[]
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_job record;
BEGIN
    takers := '{}';
    held := '{}';
    FOR v_job IN
        SELECT DISTINCT ON (j.key) j.key, j.id, j.key_period
        FROM unnest(p_ids, p_serials) WITH ORDINALITY AS n (id, serial, place)
        JOIN {schema}.jobs AS j ON j.id = n.id
        WHERE j.key IS NOT NULL AND j.key_mode <> 'throttle' AND j.state IN (4, 5)
            AND (n.serial IS NULL OR n.serial = j.serial)
        ORDER BY j.key, n.place
    LOOP
        IF {schema}.take(
            v_job.key, v_job.id, p_now + v_job.key_period * interval '1 second', false, p_now
        ) IS NULL THEN
            takers := takers || v_job.id;
        END IF;
        held := held || v_job.key;
    END LOOP;
END $$;
