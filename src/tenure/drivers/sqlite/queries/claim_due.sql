-- Due jobs of one queue and one priority, in the order of claims, as they are once claimed.
-- In: queue, priority, now, how many at most. Out: what rows.read_due takes.
-- The index has the order, so no sort; the caller may stop reading early. Nothing is changed yet.
-- Each column costs about as much as reading the row does, so these are the ones in which most jobs
-- differ. The last says what else there is: 0 nothing, 1 something, 2 limits; see claim_whole.
SELECT
    seq, id, name, max_attempts, timeout, headers, attempt + 1, serial + 1, run_at,
    nullif(created_at, run_at), payload,
    CASE
        WHEN limits IS NOT NULL THEN 2
        WHEN unique_key IS NULL AND stalls = 0 AND cancel_requested = 0 AND error IS NULL
            AND result IS NULL AND progress IS NULL AND finished_at IS NULL THEN 0
        ELSE 1
    END
FROM tenure_jobs INDEXED BY tenure_jobs_ready
WHERE state = 0 AND lane IS NULL AND queue = ?1 AND priority = ?2 AND run_at <= ?3
ORDER BY run_at, seq
LIMIT ?4;
