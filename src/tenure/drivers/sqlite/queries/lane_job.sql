-- What decides about the place of a waiting job. In: seq. Out: queue, priority, due time, limits.
SELECT queue, priority, run_at, ifnull(limits, '') FROM tenure_jobs WHERE seq = ?1;
