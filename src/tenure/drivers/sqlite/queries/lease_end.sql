-- Makes a job pending again whose lease has run out. The settled hold stays.
-- In: serial, stalls, due time, now, seq. Out: nothing.
UPDATE tenure_jobs
SET state = 0, serial = ?1, stalls = ?2, run_at = ?3,
    token = NULL, lease_until = NULL, lease = NULL, worker = NULL, claimed_at = NULL,
    updated_at = ?4
WHERE seq = ?5;
