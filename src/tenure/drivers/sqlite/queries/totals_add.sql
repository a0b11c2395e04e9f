-- Adds to the number of jobs of a queue in a state. In: queue, state, how many. Out: nothing.
INSERT INTO tenure_totals (queue, state, n) VALUES (?1, ?2, ?3)
ON CONFLICT (queue, state) DO UPDATE SET n = n + excluded.n;
