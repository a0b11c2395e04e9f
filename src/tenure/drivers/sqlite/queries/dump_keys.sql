-- The unique keys that these jobs hold now. In: a JSON array of ids, now. Out: id, key, until.
SELECT u.holder, u.key, u.until
FROM json_each(?1) AS given
CROSS JOIN tenure_unique AS u INDEXED BY tenure_unique_holder ON u.holder = given.value
WHERE u.until IS NULL OR u.until > ?2;
