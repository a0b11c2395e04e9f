-- What was last seen of the wall clock. In: nothing. Out: boot, how far ahead, when it was set.
SELECT boot, ahead, set_at FROM tenure_clock;
