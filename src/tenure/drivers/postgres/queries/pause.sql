-- Stops claims of a queue. In: queue. Out: nothing.
INSERT INTO {schema}.paused (queue) VALUES ($1) ON CONFLICT DO NOTHING
