-- When a key lets one more claim through.
-- In: the key, now. Out: -infinity for now, infinity where a hold must end first, else the instant,
--     later than now, at which fewer claims than its rate are within the last second.
-- A claim of the far future was made before the clock was set back, and must not block.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.free_at(p_key text, p_now timestamptz)
RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_limit {schema}.limits := {schema}.limit_of(p_key);
BEGIN
    IF v_limit.concurrent IS NOT NULL AND v_limit.concurrent <= coalesce(
        (SELECT h.n FROM {schema}.holds AS h WHERE h.key = p_key), 0
    ) THEN
        RETURN 'infinity';
    END IF;
    IF v_limit.per_second IS NULL THEN
        RETURN '-infinity';
    END IF;
    RETURN coalesce((
        SELECT recent.at + interval '1 second'
        FROM (
            SELECT c.at, sum(c.n) OVER (ORDER BY c.at DESC) AS since
            FROM {schema}.claims AS c
            WHERE c.key = p_key
                AND c.at > p_now - interval '1 second' AND c.at <= p_now + interval '1 second'
        ) AS recent
        WHERE recent.since >= v_limit.per_second
        ORDER BY recent.at DESC
        LIMIT 1
    ), '-infinity');
END $$;
