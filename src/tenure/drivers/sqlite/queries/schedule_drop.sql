-- Removes a schedule. In: id. Out: the row count says whether it was there.
DELETE FROM tenure_schedules WHERE id = ?1;
