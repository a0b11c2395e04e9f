-- Lets the leases of workers that are gone end now. Looks at the processing jobs only.
-- In: now, a JSON array of worker ids. Out: nothing.
UPDATE tenure_jobs INDEXED BY tenure_jobs_processing SET lease_until = ?1, lease = 0
WHERE state = 2 AND lease_until > ?1 AND worker IN (SELECT value FROM json_each(?2));
