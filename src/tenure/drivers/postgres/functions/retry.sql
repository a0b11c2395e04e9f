-- Makes failed and cancelled jobs due now.
-- In: ids, the serials they must have (NULL: any), now or NULL for the server's.
-- Out: one answer for each id, as in `Answer`.
-- Judges as cancel.sql does. The unique keys of the jobs are taken first, then rows are locked, as in
-- enqueue_unique.sql; where a job turns out to be another than the look before its key was taken said,
-- all is undone and looked at again.
CREATE OR REPLACE FUNCTION {schema}.retry(p_ids text[], p_serials bigint[], p_now timestamptz)
RETURNS text[] LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_takers text[];  -- ids of the jobs for which their key was taken
    v_held text[];  -- keys that are not to be had, for others than the takers
BEGIN
    LOOP
        BEGIN
            SELECT t.takers, t.held INTO v_takers, v_held
            FROM {schema}.take_anew(p_ids, p_serials, v_now) AS t;
            RETURN {schema}.retry_holding(p_ids, p_serials, v_takers, v_held, v_now);
        EXCEPTION WHEN SQLSTATE 'TN001' THEN
            NULL;
        END;
    END LOOP;
END $$;
