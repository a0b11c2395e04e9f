-- Moves a waiting job. In: queue, due time, priority (NULL: stays), now, seq. Out: nothing.
UPDATE tenure_jobs
SET queue = ifnull(?1, queue), run_at = ifnull(?2, run_at), priority = ifnull(?3, priority),
    updated_at = ?4
WHERE seq = ?5;
