-- Lets the leases of workers that are gone end soon: those whose lock of a lifeline is to be had alone.
-- In: in how many seconds, now or NULL for the server's.
-- Out: in how many seconds the first of their leases runs out, not below 0; NULL where they have none.
-- The locks are kept until the end of the transaction, so that a worker that comes back meanwhile finds
-- its leases as they are afterwards. The jobs are looked at only where somebody is gone. A row is
-- forgotten when its worker has no hold any more, or when it is from another run of the server: a
-- worker that lives has to tie itself to this one anyway.
CREATE OR REPLACE FUNCTION {schema}.shorten(p_seconds double precision, p_now timestamptz)
RETURNS double precision LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_until timestamptz := v_now + p_seconds * interval '1 second';
    v_gone text[];
    v_first timestamptz;
BEGIN
    DELETE FROM {schema}.lifelines AS l WHERE l.server <> pg_postmaster_start_time();
    v_gone := ARRAY(
        SELECT l.worker FROM {schema}.lifelines AS l WHERE pg_try_advisory_xact_lock(l.lock)
    );
    IF cardinality(v_gone) = 0 THEN
        RETURN NULL;
    END IF;
    UPDATE {schema}.jobs AS j SET lease_until = v_until
    WHERE j.seq = ANY (ARRAY(
        SELECT h.seq FROM {schema}.jobs AS h
        WHERE h.state = 2 AND h.worker = ANY (v_gone) AND h.lease_until > v_until
        FOR UPDATE SKIP LOCKED
    ));
    DELETE FROM {schema}.lifelines AS l
    WHERE l.worker = ANY (v_gone) AND NOT EXISTS (
        SELECT FROM {schema}.jobs AS j WHERE j.state = 2 AND j.worker = l.worker
    );
    SELECT min(j.lease_until) INTO v_first
    FROM {schema}.jobs AS j WHERE j.state = 2 AND j.worker = ANY (v_gone);
    RETURN CASE WHEN v_first IS NOT NULL THEN greatest(0, extract(epoch FROM v_first - v_now)) END;
END $$;
