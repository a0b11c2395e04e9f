-- How many waiting jobs of one queue and one priority are due later, up to a bound.
-- In: queue, priority, now, bound. Out: one number.
SELECT count(*) FROM (
    SELECT 1
    FROM tenure_jobs INDEXED BY tenure_jobs_ready
    WHERE state = 0 AND lane IS NULL AND queue = ?1 AND priority = ?2 AND run_at > ?3
    LIMIT ?4
);
