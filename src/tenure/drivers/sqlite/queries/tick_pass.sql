-- Lets an instant of a schedule pass, where nobody has and it is not paused.
-- In: id, revision, the last tick that it must have, the instant. Out: the row count says whether.
UPDATE tenure_schedules SET last = ?4
WHERE id = ?1 AND revision = ?2 AND last = ?3 AND NOT paused;
