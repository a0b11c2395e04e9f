-- Whether a schedule still has a revision and a last tick, and is not paused.
-- In: id, revision, last tick. Out: 0 or 1.
SELECT EXISTS (
    SELECT 1 FROM tenure_schedules
    WHERE id = ?1 AND revision = ?2 AND last = ?3 AND NOT paused
);
