-- Drops workers whose report has run out. In: now. Out: nothing.
DELETE FROM tenure_workers WHERE until <= ?1;
