-- Takes the jobs that claim_due gave.
-- In: token, lease end, lease, worker, now, a JSON array of seqs. Out: nothing.
UPDATE tenure_jobs
SET state = 2, attempt = attempt + 1, serial = serial + 1,
    token = ?1, lease_until = ?2, lease = ?3, worker = ?4, claimed_at = ?5, updated_at = ?5
WHERE seq IN (SELECT value FROM json_each(?6));
