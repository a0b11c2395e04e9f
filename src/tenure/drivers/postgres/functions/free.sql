-- Gives unique keys back, where the jobs hold them: they have ended, are gone, or have started where
-- that is the end of it. The mark of a throttle stays.
-- In: keys and ids of jobs whose rows this transaction has locked, equally long.
-- It never waits, so that whoever ends jobs holds locks of rows of jobs only while it waits: with the
-- order in enqueue_unique.sql nobody waits crosswise. Only a key whose time is over is ever locked by somebody
-- else, who is about to drop it; what that somebody leaves there is not held either.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.free(p_keys text[], p_ids text[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM {schema}.keys WHERE key = ANY (ARRAY(
        SELECT k.key
        FROM unnest(p_keys, p_ids) AS n (key, id)
        JOIN {schema}.keys AS k ON k.key = n.key AND k.job_id = n.id
        WHERE NOT k.throttle
        FOR UPDATE OF k SKIP LOCKED
    ));
END $$;
