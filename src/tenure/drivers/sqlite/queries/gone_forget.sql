-- Drops ids of deleted jobs that need not be known any longer.
-- In: now, how many at most. Out: nothing.
DELETE FROM tenure_gone
WHERE id IN (SELECT id FROM tenure_gone WHERE until <= ?1 ORDER BY until LIMIT ?2);
