-- Stores one job that has no unique key and no limits, unless its id is stored already.
-- In: the columns below in their order. Out: the row count says whether it was new.
-- Why DO NOTHING: a repeat of a whole batch is the one conflict that is expected, and then the
-- caller compares contents. It asks afterwards, so that the usual batch pays for no second look-up.
INSERT INTO tenure_jobs (
    seq, id, name, queue, state, priority, run_at, attempt, stalls, serial, max_attempts, timeout,
    cancel_requested, content, created_at, updated_at, headers, payload
)
VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 0, 0, 0, ?7, ?8, 0, ?9, ?10, ?10, ?11, ?12)
ON CONFLICT (id) DO NOTHING;
