-- Notes claims of a key with a rate. In: key, now, how many. Out: nothing.
INSERT INTO tenure_claims (key, at, n) VALUES (?1, ?2, ?3)
ON CONFLICT (key, at) DO UPDATE SET n = n + excluded.n;
