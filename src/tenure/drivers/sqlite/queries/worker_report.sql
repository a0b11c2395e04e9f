-- Shows a worker until an instant. In: id, info as JSON, until. Out: nothing.
INSERT INTO tenure_workers (id, info, until) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET info = excluded.info, until = excluded.until;
