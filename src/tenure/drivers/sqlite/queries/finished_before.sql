-- Jobs of one state and queue that ended before an instant, oldest end first.
-- In: state, queue, instant, how many at most. Out: seq.
SELECT seq
FROM tenure_jobs INDEXED BY tenure_jobs_finished
WHERE state = ?1 AND queue = ?2 AND finished_at < ?3
ORDER BY finished_at, seq
LIMIT ?4;
