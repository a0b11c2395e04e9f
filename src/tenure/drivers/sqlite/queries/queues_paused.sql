-- The paused queues. In: nothing. Out: name.
SELECT name FROM tenure_queues WHERE paused;
