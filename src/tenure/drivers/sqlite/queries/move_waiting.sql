-- Moves a waiting job, out of its lane where it has one.
-- In: queue, due time, priority (NULL: stays), now, seq. Out: nothing.
UPDATE tenure_jobs
SET queue = ifnull(?1, queue), run_at = ifnull(?2, run_at), priority = ifnull(?3, priority),
    lane = NULL, updated_at = ?4
WHERE seq = ?5;
