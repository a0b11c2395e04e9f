-- Keeps the newest attempts of a job. In: seq, how many less one. Out: nothing.
DELETE FROM tenure_history
WHERE job = ?1 AND serial < (
    SELECT serial FROM tenure_history WHERE job = ?1 ORDER BY serial DESC LIMIT 1 OFFSET ?2
);
