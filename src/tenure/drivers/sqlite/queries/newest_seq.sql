-- The newest arrival number; 0 in an empty table.
-- In: nothing. Out: one number. One seek.
SELECT ifnull(max(seq), 0) FROM tenure_jobs;
