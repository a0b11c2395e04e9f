-- Whether any deleted id is remembered: nearly always no, and then gone_by_ids is not needed.
-- In: nothing. Out: 0 or 1.
SELECT EXISTS (SELECT 1 FROM tenure_gone);
