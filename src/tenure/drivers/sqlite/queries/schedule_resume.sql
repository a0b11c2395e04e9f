-- Lets ticks fire again, those after now; changes nothing about one that is not paused.
-- In: id, now. Out: the row count says whether it is there.
UPDATE tenure_schedules
SET last = iif(paused, max(last, ?2), last), paused = 0
WHERE id = ?1;
