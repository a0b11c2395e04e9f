-- Which of the jobs that purge_find gave still match: time has passed, and a seq may even belong
-- to another job by now. In: a JSON array of seqs, state, queue, name (NULL: any).
-- Out: seq, queue, state, id where it has a unique key, limits, bytes of payload and result.
SELECT
    j.seq, j.queue, j.state, iif(j.unique_key IS NULL, NULL, j.id), j.limits,
    length(j.payload) + ifnull(length(j.result), 0)
FROM json_each(?1) AS given
CROSS JOIN tenure_jobs AS j ON j.seq = given.value
WHERE j.state <> 2
    AND (?2 IS NULL OR j.state = ?2)
    AND (?3 IS NULL OR j.queue = ?3)
    AND (?4 IS NULL OR j.name = ?4);
