-- How many kept-back jobs of a queue are due, up to a bound. In: queue, now, bound. Out: a number.
SELECT count(*) FROM (
    SELECT 1
    FROM tenure_jobs INDEXED BY tenure_jobs_kept_due
    WHERE lane IS NOT NULL AND queue = ?1 AND run_at <= ?2
    LIMIT ?3
);
