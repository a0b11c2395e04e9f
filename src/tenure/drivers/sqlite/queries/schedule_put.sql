-- Stores a schedule. One with the same definition stays as it is; another definition takes its
-- place, with ticks from now on, and paused where the old one was.
-- In: id, revision, definition, now. Out: nothing.
INSERT INTO tenure_schedules (id, revision, definition, created_at, last, paused)
VALUES (?1, ?2, ?3, ?4, ?4, 0)
ON CONFLICT (id) DO UPDATE
SET revision = excluded.revision, definition = excluded.definition,
    created_at = excluded.created_at, last = excluded.last
WHERE definition <> excluded.definition;
