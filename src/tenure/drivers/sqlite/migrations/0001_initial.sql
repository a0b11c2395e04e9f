-- The tables of tenure, version 1.
--
-- All names begin with tenure_, and the version is a row of tenure_schema: the file may hold the
-- tables of an application too, and user_version and application_id are the application's.
-- Times and leases are whole microseconds (since the epoch, UTC), timeouts are seconds.
-- States: 0 pending, 1 blocked, 2 processing, 3 completed, 4 failed, 5 cancelled.

CREATE TABLE tenure_schema (version INTEGER NOT NULL) STRICT;

-- seq is the order of arrival and the key of the table: a random or textual key is several times
-- slower and gets worse with size. Small columns come first, so that reading them never walks the
-- overflow pages of a large payload. The hold (token, lease_until, lease, worker,
-- claimed_at) is NULL unless the job is processing; settled_* is the last hold that was settled,
-- kept apart from it. What is unique about a job and which keys it counts against are JSON, NULL
-- where there is nothing.
CREATE TABLE tenure_jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    queue TEXT NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    stalls INTEGER NOT NULL,
    serial INTEGER NOT NULL,
    token TEXT,
    lease_until INTEGER,
    lease INTEGER,
    worker TEXT,
    claimed_at INTEGER,
    max_attempts INTEGER,
    timeout REAL,
    cancel_requested INTEGER NOT NULL,
    settled_serial INTEGER,
    settled_token TEXT,
    settled_outcome TEXT,
    content BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    finished_at INTEGER,
    unique_key TEXT,
    limits TEXT,
    lane INTEGER,
    headers TEXT,
    error TEXT,
    progress BLOB,
    result BLOB,
    payload BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX tenure_jobs_id ON tenure_jobs (id);

-- The order of claims (I11); seq follows as the last column of every index by itself.
CREATE INDEX tenure_jobs_ready ON tenure_jobs (queue, priority, run_at)
    WHERE state = 0 AND lane IS NULL;

-- Waiting jobs that are kept back in a lane (see tenure_lanes): in its order, and to be counted.
CREATE INDEX tenure_jobs_kept ON tenure_jobs (lane, run_at) WHERE lane IS NOT NULL;
CREATE INDEX tenure_jobs_kept_due ON tenure_jobs (queue, run_at) WHERE lane IS NOT NULL;

-- Small, since only running jobs are in it. Not on the lease: each extension would move an entry,
-- and looking through the running jobs costs less.
CREATE INDEX tenure_jobs_processing ON tenure_jobs (state) WHERE state = 2;

-- For pruning by age and by number. A job has finished_at exactly when it has ended.
CREATE INDEX tenure_jobs_finished ON tenure_jobs (state, queue, finished_at)
    WHERE finished_at IS NOT NULL;

-- For listing what went wrong; rare, so cheap.
CREATE INDEX tenure_jobs_unsuccessful ON tenure_jobs (state) WHERE state IN (4, 5);

-- How many jobs are in which state, and of how many bytes of payload and result the completed ones
-- are (0 for other states). Changed in the transaction that changes the jobs.
CREATE TABLE tenure_totals (
    queue TEXT NOT NULL,
    state INTEGER NOT NULL,
    n INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;

-- A queue that is not here is not paused.
CREATE TABLE tenure_queues (
    name TEXT PRIMARY KEY,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Ids of deleted jobs, known until then, so that a repeated dispatch does not bring a job back.
CREATE TABLE tenure_gone (
    id TEXT PRIMARY KEY,
    content BLOB NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tenure_gone_until ON tenure_gone (until);

-- Attempts that did not complete their job, each by the serial of its hold; gone with the job.
CREATE TABLE tenure_history (
    job INTEGER NOT NULL,
    serial INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    worker TEXT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (job, serial)
) STRICT, WITHOUT ROWID;

-- Which unique key is held, by the job of which id, until when (NULL: until it is freed). A
-- throttle is held until then whatever becomes of the job; any other goes with its job's end.
CREATE TABLE tenure_unique (
    key TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER,
    throttle INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- For freeing: by the job, so that a damaged record of it cannot keep a key for ever.
CREATE INDEX tenure_unique_holder ON tenure_unique (holder);

-- For pruning.
CREATE INDEX tenure_unique_until ON tenure_unique (until) WHERE until IS NOT NULL;

-- What recurs; `last` is the newest tick that was fired or skipped, compared to the microsecond.
CREATE TABLE tenure_schedules (
    id TEXT PRIMARY KEY,
    revision TEXT NOT NULL,
    definition BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    last INTEGER NOT NULL,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Limits on keys, or on all keys with a beginning (it ends in *); a bound that is NULL is not set.
CREATE TABLE tenure_limits (
    key TEXT PRIMARY KEY,
    per_second INTEGER,
    concurrent INTEGER
) STRICT, WITHOUT ROWID;

-- Waiting jobs of one queue and priority that name the same keys: either a limit holds all of them
-- or none. So only the first, the head, is in the order of claims; the others are kept back
-- (tenure_jobs.lane), and so is the head while the lane is parked on a key that is full.
CREATE TABLE tenure_lanes (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    limits TEXT NOT NULL,
    head INTEGER NOT NULL,
    head_at INTEGER NOT NULL,
    parked TEXT
) STRICT;

CREATE UNIQUE INDEX tenure_lanes_place ON tenure_lanes (queue, priority, limits);
CREATE INDEX tenure_lanes_head ON tenure_lanes (head);

-- Which lane is next once a key has room.
CREATE INDEX tenure_lanes_parked ON tenure_lanes (parked, queue, priority DESC, head_at, head);

-- How many current holds name a key; and while lanes are parked on it for its rate, when that is
-- over.
CREATE TABLE tenure_holds (
    key TEXT PRIMARY KEY,
    n INTEGER NOT NULL,
    free_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX tenure_holds_free ON tenure_holds (free_at) WHERE free_at IS NOT NULL;

-- How many jobs of a key with a rate were claimed at an instant; of use for a second.
CREATE TABLE tenure_claims (
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (key, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX tenure_claims_at ON tenure_claims (at);

-- One row: how far the wall clock was ahead of the time since boot when a worker looked last, and at
-- which of the latter it was first seen to have been set (NULL: not since that boot). Microseconds.
CREATE TABLE tenure_clock (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    boot TEXT NOT NULL,
    ahead INTEGER NOT NULL,
    set_at INTEGER
) STRICT;

-- What workers say of themselves, for display.
CREATE TABLE tenure_workers (
    id TEXT PRIMARY KEY,
    info TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
