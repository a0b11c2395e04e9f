-- Ties a worker to this session, until that ends or gives the lock up, and makes up for a session that was
-- lost: leases that were shortened meanwhile, and not reclaimed, are as long again as they were.
-- In: the worker's id, and to how many seconds leases are shortened. Out: the lock.
-- The lock comes first: a row without one would be taken for a worker that is gone. It is waited for as
-- long as a look at who is gone has it, which is a statement.
CREATE OR REPLACE FUNCTION {schema}.tie(p_worker text, p_seconds double precision)
RETURNS bigint LANGUAGE plpgsql VOLATILE {planning} AS $$
DECLARE
    v_lock bigint := hashtextextended('tenure.lifeline.{schema}.' || p_worker, 0);
    v_now timestamptz;
BEGIN
    PERFORM pg_advisory_lock_shared(v_lock);
    v_now := clock_timestamp();
    INSERT INTO {schema}.lifelines AS l (worker, lock, server)
    VALUES (p_worker, v_lock, pg_postmaster_start_time())
    ON CONFLICT (worker) DO UPDATE SET server = excluded.server;
    UPDATE {schema}.jobs AS j
    SET lease_until = v_now + j.lease * interval '1 second'
    WHERE j.seq = ANY (ARRAY(
        SELECT h.seq FROM {schema}.jobs AS h
        WHERE h.state = 2 AND h.worker = p_worker
            AND h.lease_until <= v_now + p_seconds * interval '1 second'
            AND h.lease > p_seconds
        FOR UPDATE SKIP LOCKED
    ));
    RETURN v_lock;
END $$;
