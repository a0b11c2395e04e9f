-- Jobs of one state and queue that ended before an instant, oldest end first.
-- In: state, queue, instant, how many at most. Out: seq, bytes of payload and result.
-- The length of a column stands in the head of its row: nothing of a large payload is read.
SELECT seq, length(payload) + ifnull(length(result), 0)
FROM tenure_jobs INDEXED BY tenure_jobs_finished
WHERE state = ?1 AND queue = ?2 AND finished_at < ?3
ORDER BY finished_at, seq
LIMIT ?4;
