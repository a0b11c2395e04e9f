-- Moves the end of leases. The caller has checked the holds.
-- In: lease end, lease, a JSON array of seqs. Out: nothing.
UPDATE tenure_jobs SET lease_until = ?1, lease = ?2
WHERE seq IN (SELECT value FROM json_each(?3));
