-- What a refused dispatch must know of the holder of its key. In: id.
-- Out: seq, name, state, due time, dispatched at, limits; or no row.
SELECT seq, name, state, run_at, created_at, limits
FROM tenure_jobs INDEXED BY tenure_jobs_id
WHERE id = ?1;
