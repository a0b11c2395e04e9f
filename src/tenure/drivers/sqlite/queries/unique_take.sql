-- Lets a job hold a key, in the place of whoever did. The caller has seen that nobody does now.
-- In: key, id of the job, until when (NULL: until it is freed), whether it is a throttle's.
-- Out: nothing.
INSERT INTO tenure_unique (key, holder, until, throttle) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (key) DO UPDATE
SET holder = excluded.holder, until = excluded.until, throttle = excluded.throttle;
