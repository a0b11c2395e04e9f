-- How many jobs each queue has in each state. In: nothing. Out: queue, state, n.
SELECT queue, state, n FROM tenure_totals WHERE n <> 0;
