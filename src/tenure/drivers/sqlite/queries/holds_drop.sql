-- Drops a key that has no holds. In: key. Out: nothing.
DELETE FROM tenure_holds WHERE key = ?1;
