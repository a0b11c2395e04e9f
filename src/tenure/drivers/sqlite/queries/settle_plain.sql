-- Ends processing jobs as completed without a result, as settle_completed does one.
-- In: now, name of the outcome, a JSON array of seqs. Out: nothing.
-- The caller has checked the holds in this transaction.
UPDATE tenure_jobs
SET state = 3, stalls = 0, error = NULL, result = NULL, cancel_requested = 0,
    settled_serial = serial, settled_token = token, settled_outcome = ?2,
    token = NULL, lease_until = NULL, lease = NULL, worker = NULL, claimed_at = NULL,
    finished_at = ?1, updated_at = ?1
WHERE seq IN (SELECT value FROM json_each(?3));
