-- How many holds there are by what the running jobs say; a repair of tenure_holds.
-- In: nothing. Out: limits, how many. Looks at the processing jobs only.
SELECT limits, count(*)
FROM tenure_jobs INDEXED BY tenure_jobs_processing
WHERE state = 2 AND limits IS NOT NULL
GROUP BY limits;
