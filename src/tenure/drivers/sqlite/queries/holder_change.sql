-- Gives a waiting job what a later dispatch asked for.
-- In: payload (NULL: stays), due time, now, seq. Out: nothing.
UPDATE tenure_jobs SET payload = ifnull(?1, payload), run_at = ?2, updated_at = ?3
WHERE seq = ?4;
