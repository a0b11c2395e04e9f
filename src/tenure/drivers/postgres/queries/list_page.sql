-- Jobs between the cursor and the floor that match, newest arrival first.
-- In: cursor, floor, state, queue, name (NULL: any), how many at most. Out: a job row (job_row.sql).
-- {source} is one of the texts in statements.py: which index gives the candidates.
SELECT {job_row}
FROM {schema}.jobs
WHERE {source} AND seq < $1 AND seq >= $2
    AND ($3::smallint IS NULL OR state = $3)
    AND ($4::text IS NULL OR queue = $4)
    AND ($5::text IS NULL OR name = $5)
ORDER BY seq DESC
LIMIT $6
