-- How many holds were counted. In: nothing. Out: key, n. As many rows as keys that are held or
-- waited for.
SELECT key, n FROM tenure_holds;
