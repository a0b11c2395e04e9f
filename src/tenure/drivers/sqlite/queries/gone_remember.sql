-- Remembers the ids of jobs about to be deleted.
-- In: a JSON array of seqs, until when. Out: nothing.
INSERT INTO tenure_gone (id, content, until)
SELECT j.id, j.content, ?2
FROM json_each(?1) AS given
CROSS JOIN tenure_jobs AS j ON j.seq = given.value
WHERE true
ON CONFLICT (id) DO UPDATE SET content = excluded.content, until = excluded.until;
