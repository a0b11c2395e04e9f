-- The first of the jobs that are kept back in a lane. In: lane. Out: seq, due time; or no row.
SELECT seq, run_at
FROM tenure_jobs INDEXED BY tenure_jobs_kept
WHERE lane = ?1
ORDER BY run_at, seq
LIMIT 1;
