-- Resumes a queue. In: its name. Out: the row count says whether it was paused.
DELETE FROM tenure_queues WHERE name = ?1;
