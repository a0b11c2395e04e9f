-- Locks the waiting jobs that a dispatch kept out by them is to change, in the order of ids.
-- In: names, keys and modes of the new jobs, and who holds their keys. Out: whether they still wait,
--     and hold the keys; where not, the caller undoes the locks.
-- A job that runs is not locked: a transaction of a user would keep it from being recorded.
-- Runs under the settings of the function that calls it.
CREATE OR REPLACE FUNCTION {schema}.lock_holders(
    p_names text[], p_keys text[], p_modes text[], p_holders text[]
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_ids text[];
    v_locked integer;
BEGIN
    SELECT array_agg(DISTINCT j.id) INTO v_ids
    FROM unnest(p_names, p_modes, p_holders) AS n (name, mode, holder)
    JOIN {schema}.jobs AS j ON j.id = n.holder AND j.name = n.name AND j.state < 2
    WHERE n.mode IN ('replace', 'debounce');
    IF v_ids IS NULL THEN
        RETURN true;
    END IF;
    PERFORM FROM {schema}.jobs WHERE id = ANY (v_ids) AND state < 2 ORDER BY id FOR UPDATE;
    GET DIAGNOSTICS v_locked = ROW_COUNT;
    RETURN v_locked = cardinality(v_ids) AND NOT EXISTS (
        SELECT FROM unnest(p_keys, p_holders) AS n (key, holder)
        WHERE n.holder = ANY (v_ids) AND NOT EXISTS (
            SELECT FROM {schema}.keys AS k WHERE k.key = n.key AND k.job_id = n.holder
        )
    );
END $$;
