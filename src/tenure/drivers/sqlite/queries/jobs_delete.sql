-- Deletes jobs. In: a JSON array of seqs. Out: nothing.
DELETE FROM tenure_jobs WHERE seq IN (SELECT value FROM json_each(?1));
