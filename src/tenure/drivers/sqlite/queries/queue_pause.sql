-- Pauses a queue. In: its name. Out: nothing.
INSERT INTO tenure_queues (name, paused) VALUES (?1, 1)
ON CONFLICT (name) DO UPDATE SET paused = 1;
