-- Holds whose lease has run out, longest ago first.
-- In: now, how many at most (-1: all). Out: seq, id, queue, stalls, serial, token, end, lease,
-- limits.
-- Looks at the processing jobs only. A missing end is damage, and counts as long ago.
SELECT
    seq, id, queue, stalls, serial, ifnull(token, ''), ifnull(lease_until, 0), ifnull(lease, 0),
    limits
FROM tenure_jobs INDEXED BY tenure_jobs_processing
WHERE state = 2 AND ifnull(lease_until, 0) <= ?1
ORDER BY ifnull(lease_until, 0), seq
LIMIT ?2;
