-- Ends a processing job as completed. The caller has checked the hold in this transaction.
-- In: result, now, name of the outcome, seq. Out: nothing.
-- On the right of SET stand the old values, so the current hold becomes the settled one.
UPDATE tenure_jobs
SET state = 3, stalls = 0, error = NULL, result = ?1, cancel_requested = 0,
    settled_serial = serial, settled_token = token, settled_outcome = ?3,
    token = NULL, lease_until = NULL, lease = NULL, worker = NULL, claimed_at = NULL,
    finished_at = ?2, updated_at = ?2
WHERE seq = ?4;
