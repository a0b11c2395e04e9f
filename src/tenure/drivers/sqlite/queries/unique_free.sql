-- Frees what jobs hold that have ended, were deleted, or have started where that ends it. A
-- throttle's mark stays. In: a JSON array of ids of jobs. Out: nothing.
DELETE FROM tenure_unique
WHERE holder IN (SELECT value FROM json_each(?1)) AND NOT throttle;
