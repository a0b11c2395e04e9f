-- Whether this file has tables of ours.
-- In: nothing. Out: one row, 0 or 1.
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'tenure_schema';
