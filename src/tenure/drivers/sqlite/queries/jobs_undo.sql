-- Takes back what this transaction inserted from an arrival number on.
-- In: the first seq. Out: nothing.
-- Arrival numbers only grow, and nobody else can write meanwhile: all from there on are its own.
DELETE FROM tenure_jobs WHERE seq >= ?1;
