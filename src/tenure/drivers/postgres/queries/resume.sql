-- Lets claims of a queue go on. In: queue. Out: nothing.
DELETE FROM {schema}.paused WHERE queue = $1
