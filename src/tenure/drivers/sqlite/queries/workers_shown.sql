-- The workers whose report has not run out, by id. In: now. Out: info as JSON.
SELECT info FROM tenure_workers WHERE until > ?1 ORDER BY id;
