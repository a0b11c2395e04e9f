-- How many holds a key has, and when its rate lets jobs through again, where lanes wait for that.
-- In: key. Out: n, free_at; or no row.
SELECT n, free_at FROM tenure_holds WHERE key = ?1;
