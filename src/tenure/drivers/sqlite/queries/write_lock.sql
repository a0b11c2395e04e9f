-- Takes the lock for writing in a transaction that has begun without it. In and out: nothing.
-- A statement that may write waits for the lock before it reads, and one that finds it taken after a read cannot.
DELETE FROM tenure_queues WHERE 0;
