-- All schedules. In: nothing. Out: id, revision, definition, created at, last, paused.
SELECT id, revision, definition, created_at, last, paused FROM tenure_schedules ORDER BY id;
