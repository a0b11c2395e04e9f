-- Stores a schedule as it stood in another store. In: the columns below in their order. Out: nothing.
INSERT INTO tenure_schedules (id, revision, definition, created_at, last, paused)
VALUES (?, ?, ?, ?, ?, ?);
