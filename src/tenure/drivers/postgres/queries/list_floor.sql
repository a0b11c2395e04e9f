-- The seq down to which a page may look, so that each call examines a bounded number of jobs.
-- In: cursor, how many to examine less one. Out: seq; no row where fewer are left.
-- {source} is one of the texts in statements.py: which index gives the candidates.
SELECT seq FROM {schema}.jobs
WHERE {source} AND seq < $1
ORDER BY seq DESC
OFFSET $2 LIMIT 1
