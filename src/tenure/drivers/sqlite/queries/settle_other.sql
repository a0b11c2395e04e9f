-- Applies any outcome but a completion. The caller has checked the hold in this transaction.
-- In: state, attempt, stalls, due time, end or NULL, error or NULL (keeps the old one),
--     name of the outcome, now, seq. Out: nothing.
UPDATE tenure_jobs
SET state = ?1, attempt = ?2, stalls = ?3, run_at = ?4, finished_at = ?5,
    error = ifnull(?6, error), cancel_requested = 0,
    settled_serial = serial, settled_token = token, settled_outcome = ?7,
    token = NULL, lease_until = NULL, lease = NULL, worker = NULL, claimed_at = NULL,
    updated_at = ?8
WHERE seq = ?9;
