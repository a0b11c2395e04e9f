-- Deletes the histories of jobs. In: a JSON array of seqs. Out: nothing.
DELETE FROM tenure_history WHERE job IN (SELECT value FROM json_each(?1));
