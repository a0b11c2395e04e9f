-- Gives a waiting job what a later dispatch asked for, out of its lane where it has one.
-- In: payload (NULL: stays), due time, now, seq. Out: nothing.
UPDATE tenure_jobs SET payload = ifnull(?1, payload), run_at = ?2, lane = NULL, updated_at = ?3
WHERE seq = ?4;
