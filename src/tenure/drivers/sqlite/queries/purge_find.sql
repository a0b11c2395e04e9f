-- Jobs to purge: all that match and are not processing.
-- In: state, queue, name (NULL: any), how many at most. Out: seq, state, queue.
-- {source} is one of the texts in inspection.py: which index gives the candidates.
SELECT seq
FROM tenure_jobs {source} AND state <> 2
    AND (?1 IS NULL OR state = ?1)
    AND (?2 IS NULL OR queue = ?2)
    AND (?3 IS NULL OR name = ?3)
LIMIT ?4;
