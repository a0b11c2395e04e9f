-- Which of these workers have current holds. Looks at the processing jobs only.
-- In: a JSON array of worker ids. Out: worker.
SELECT DISTINCT worker FROM tenure_jobs INDEXED BY tenure_jobs_processing
WHERE state = 2 AND worker IN (SELECT value FROM json_each(?1));
