-- How far down one call may look: the seq of the n-th job below the cursor.
-- In: cursor, n - 1. Out: seq, or no row when there are fewer.
-- {source} is one of the texts in inspection.py: which index gives the candidates.
SELECT seq FROM tenure_jobs {source} AND seq < ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2;
