-- Sets what holds_get gets. In: key, n, free_at. Out: nothing.
INSERT INTO tenure_holds (key, n, free_at) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET n = excluded.n, free_at = excluded.free_at;
