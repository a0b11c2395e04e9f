-- Which of the given unique keys are held now, and by whom. From the last instant on a key is free.
-- In: a JSON array of keys, now. Out: key, id of the job.
-- CROSS JOIN fixes the order: one seek for each given key.
SELECT u.key, u.holder
FROM json_each(?1) AS given
CROSS JOIN tenure_unique AS u ON u.key = given.value
WHERE u.until IS NULL OR u.until > ?2;
