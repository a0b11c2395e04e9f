-- What a statement answers that shows jobs: a *job row*. Put in for {job_row}; rows.py reads it.
--
-- Times are sent as they are stored, microseconds in eight bytes: the client library makes each into a
-- datetime by itself, which took half of the time of reading a job, while most are the same in all rows.
queue, priority, timestamptz_send(run_at), seq, lease, id, name, state, max_attempts, timeout, headers,
attempt, stalls, serial, timestamptz_send(created_at), timestamptz_send(updated_at),
timestamptz_send(finished_at), error, result, progress, cancel_requested, key, key_until, key_mode,
key_period, key_max_wait, limits, payload
