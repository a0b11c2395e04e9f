-- Takes the right to read and write what is derived from limits: lanes, holds, claims, and the marks
-- that others leave. Kept until the end of the transaction.
-- Out: whether it was to be had.
-- Who has it never waits for anything else, rows of jobs included (SKIP LOCKED), so that nobody waits
-- crosswise, and it is over with the claim. Only a client that stands still while it is sent a large
-- answer may keep it for longer, and then others go on without jobs with limits.
-- Each statement after it sees what the one before committed.
CREATE OR REPLACE FUNCTION {schema}.hold_limits()
RETURNS boolean LANGUAGE plpgsql VOLATILE SET lock_timeout = '2s' AS $$
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock('{schema}.lanes'::regclass::oid::bigint);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;
