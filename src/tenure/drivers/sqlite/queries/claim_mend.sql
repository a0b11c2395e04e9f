-- Puts stand-ins for numbers that make no sense, before claim_take counts them up.
-- In: attempt, stalls, serial, seq. Out: nothing.
UPDATE tenure_jobs SET attempt = ?1, stalls = ?2, serial = ?3 WHERE seq = ?4;
