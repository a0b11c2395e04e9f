-- Takes back what this transaction inserted after a mark.
-- In: the newest seq before. Out: nothing.
DELETE FROM tenure_jobs WHERE seq > ?1;
