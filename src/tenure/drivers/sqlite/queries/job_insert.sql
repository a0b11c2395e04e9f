-- Stores jobs that have no unique key and no limits, unless their ids are stored already.
-- In: for each job the columns below in their order, but for what is the same for all; 0 for no
-- max_attempts and no timeout, '' for no headers: Python takes ten times as long over None.
-- Out: the row count says how many were new. statements.repeated makes the row as often as wanted.
-- Why DO NOTHING: a repeat of a whole batch is the one conflict that is expected, and then the
-- caller compares contents. It asks afterwards, so that the usual batch pays for no second look-up.
INSERT INTO tenure_jobs (
    state, attempt, stalls, serial, cancel_requested,
    seq, id, name, queue, priority, run_at, max_attempts, timeout, content, created_at, updated_at,
    headers, payload
)
VALUES (0, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0), ?, ?, ?, nullif(?, ''), ?)
ON CONFLICT (id) DO NOTHING;
