-- Notes what is seen of the wall clock. In: boot, how far ahead, when it was set. Out: nothing.
INSERT INTO tenure_clock (id, boot, ahead, set_at) VALUES (0, ?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, ahead = excluded.ahead, set_at = excluded.set_at;
