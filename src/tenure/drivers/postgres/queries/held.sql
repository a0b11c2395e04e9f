-- The jobs that a token holds, for a claim whose answer was lost.
-- In: token. Out: a job row (see rows.py). The state is named for the sake of its index.
SELECT
    queue, priority, run_at, seq, lease, id, name, state, max_attempts, timeout, headers, attempt,
    stalls, serial, created_at, updated_at, finished_at, error, result, progress, cancel_requested,
    key, key_until, key_mode, key_period, key_max_wait, limits, payload
FROM {schema}.jobs WHERE state = 2 AND token = $1
