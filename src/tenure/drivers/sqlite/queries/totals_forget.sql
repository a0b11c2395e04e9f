-- Drops the rows of queues that are empty, so that names used once do not stay for ever.
-- In: nothing. Out: nothing.
DELETE FROM tenure_totals WHERE n = 0;
