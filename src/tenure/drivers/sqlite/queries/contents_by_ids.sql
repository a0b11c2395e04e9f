-- Which of the given ids are stored, and with what content.
-- In: a JSON array of ids. Out: id, content, seq.
-- CROSS JOIN fixes the order: one index seek for each given id, never a scan of the jobs.
SELECT j.id, j.content, j.seq
FROM json_each(?1) AS given
CROSS JOIN tenure_jobs AS j INDEXED BY tenure_jobs_id ON j.id = given.value;
