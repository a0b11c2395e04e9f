-- Holds whose lease has run out, longest ago first, and, where that is asked for, after them those
-- that end later than their whole lease from now: the clock was set back since.
-- In: now, how many at most (-1: all), 1 or 0 for whether the latter are asked for. Out: seq, id,
-- queue, stalls, serial, token, end, lease, limits.
-- Looks at the processing jobs only. A missing end is damage, and counts as long ago.
SELECT
    seq, id, queue, stalls, serial, ifnull(token, ''), ifnull(lease_until, 0), ifnull(lease, 0),
    limits
FROM tenure_jobs INDEXED BY tenure_jobs_processing
WHERE state = 2 AND (
    ifnull(lease_until, 0) <= ?1 OR (?3 AND lease_until > ?1 + ifnull(lease, 0))
)
ORDER BY ifnull(lease_until, 0), seq
LIMIT ?2;
