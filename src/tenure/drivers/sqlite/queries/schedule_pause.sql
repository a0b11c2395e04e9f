-- Lets no tick of a schedule fire. In: id. Out: the row count says whether it is there.
UPDATE tenure_schedules SET paused = 1 WHERE id = ?1;
