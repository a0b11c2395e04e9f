-- Which of the given ids belonged to jobs deleted a moment ago, and with what content.
-- In: a JSON array of ids, now. Out: id, content.
SELECT g.id, g.content
FROM json_each(?1) AS given
CROSS JOIN tenure_gone AS g ON g.id = given.value
WHERE g.until > ?2;
