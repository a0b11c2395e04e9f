-- The jobs of these ids that are held under one hold each, with nothing special about them.
-- In: a JSON array of ids, serial, token. Out: one row: how many, the first and the last queue by
-- name, bytes of payload, and a JSON array of seqs.
-- One row for a batch, since each row that is read takes and gives up the interpreter's lock.
-- CROSS JOIN: see marks_by_ids.
SELECT
    count(*), min(j.queue), max(j.queue),
    total(length(j.payload) + ifnull(length(j.result), 0)), json_group_array(j.seq)
FROM json_each(?1) AS given
CROSS JOIN tenure_jobs AS j INDEXED BY tenure_jobs_id ON j.id = given.value
WHERE j.state = 2 AND j.serial = ?2 AND j.token = ?3 AND j.unique_key IS NULL AND j.limits IS NULL;
