-- Removes a limit. In: key. Out: the row count says whether there was one.
DELETE FROM tenure_limits WHERE key = ?1;
