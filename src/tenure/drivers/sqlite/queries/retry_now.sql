-- Makes an ended job due now, with a fresh budget. Serial, error and settled hold stay.
-- In: now, seq. Out: nothing.
UPDATE tenure_jobs
SET state = 0, attempt = 0, stalls = 0, run_at = ?1, finished_at = NULL, cancel_requested = 0,
    updated_at = ?1
WHERE seq = ?2;
