-- Adds to the number and the bytes of the jobs of a queue in a state.
-- In: queue, state, how many, bytes. Out: nothing.
INSERT INTO tenure_totals (queue, state, n, bytes) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (queue, state) DO UPDATE SET n = n + excluded.n, bytes = bytes + excluded.bytes;
