-- How many jobs each queue has in each state, and of how many bytes the completed ones are.
-- In: nothing. Out: queue, state, n, bytes.
SELECT queue, state, n, bytes FROM tenure_totals WHERE n <> 0;
