-- The tables of tenure, version 1. All names are inside the schema, which belongs to tenure.
--
-- Durations are seconds. States: 0 pending, 1 blocked, 2 processing, 3 completed, 4 failed,
-- 5 cancelled. Text that is looked up is compared byte by byte (COLLATE "C"): it is faster, and an
-- index does not depend on the locale library of the machine.

CREATE TABLE {schema}.version (version integer NOT NULL);

-- seq is the order of arrival and the key: a random or textual key is several times slower and gets
-- worse with size. The hold (token, lease_until, lease, worker, claimed_at) is NULL unless the job is
-- processing, so that a token that matches proves the state; settled_* is the last hold that was
-- settled, kept apart from it.
--
-- headers and error are JSON as text: the jsonb type refuses NUL characters, and nobody searches
-- in them here.
--
-- key is the unique key that the job was dispatched with, NULL for most; key_until, key_mode,
-- key_period and key_max_wait say how it is to be held (`UniqueKey`), and never change. Who holds
-- it is in the table keys.
--
-- limits are the keys that the job counts against, lane a digest of them; both NULL for most, and they
-- never change. kept says that such a job does not stand in the order of claims, see the table lanes.
-- It is written by claims alone, but for making it true where a waiting job gets another place.
CREATE TABLE {schema}.jobs (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    serial bigint NOT NULL DEFAULT 0,
    settled_serial bigint,
    run_at timestamptz NOT NULL,
    lease_until timestamptz,
    claimed_at timestamptz,
    lease double precision,
    timeout double precision,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    finished_at timestamptz,
    attempt integer NOT NULL DEFAULT 0,
    stalls integer NOT NULL DEFAULT 0,
    priority integer NOT NULL,
    key_period double precision,
    key_max_wait double precision,
    max_attempts integer,
    state smallint NOT NULL DEFAULT 0,
    cancel_requested boolean NOT NULL DEFAULT false,
    kept boolean NOT NULL DEFAULT false,
    lane uuid,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    token text COLLATE "C",
    worker text,
    settled_token text COLLATE "C",
    settled_outcome text COLLATE "C",
    key text COLLATE "C",
    key_until text COLLATE "C",
    key_mode text COLLATE "C",
    limits text[] COLLATE "C",
    content bytea NOT NULL,
    headers text,
    error text,
    progress bytea,
    result bytea,
    payload bytea NOT NULL
) WITH (
    -- Room on each page for the extensions of leases: they touch no index, so that the new version
    -- of a row stays on its page (of 256 heartbeats 96 % did at 70, 68 % at 100).
    fillfactor = 70,
    -- Each job leaves several dead versions behind within seconds. The defaults wait for a fifth of
    -- the table, which with a million kept jobs is 200,000 dead rows among the live ones, and then
    -- clean with pauses; a churn of a million jobs left 1.8 million dead rows that way.
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05,
    -- Giving empty pages at the end back takes a lock that stops every claim, and the pages are
    -- needed again a moment later.
    vacuum_truncate = off
);

-- Small payloads are stored as they are; compressing them costs more than it saves.
ALTER TABLE {schema}.jobs ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE {schema}.jobs ALTER COLUMN result SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX jobs_id ON {schema}.jobs (id);

-- The order of claims (I11). Read for one priority at a time: jobs that are due later at a better
-- priority lie in front of those that are due now, and a million of them made a claim take 40 ms.
CREATE INDEX jobs_ready ON {schema}.jobs (queue, priority, run_at, seq) WHERE state = 0 AND NOT kept;

-- The waiting jobs with limits: lane by lane, and to count those that are kept back.
CREATE INDEX jobs_lanes ON {schema}.jobs (queue, priority, lane, run_at, seq)
    WHERE state = 0 AND lane IS NOT NULL;
CREATE INDEX jobs_kept ON {schema}.jobs (queue, run_at) WHERE state = 0 AND kept;

-- Small, since only running jobs are in it. Not on the lease: every extension would then write an
-- entry into every index, and looking through the running jobs costs less.
CREATE INDEX jobs_processing ON {schema}.jobs (seq) WHERE state = 2;

-- For pruning by age and by number. A job has finished_at exactly when it has ended.
CREATE INDEX jobs_finished ON {schema}.jobs (state, queue, finished_at)
    WHERE finished_at IS NOT NULL;

-- For listing what went wrong; rare, so cheap.
CREATE INDEX jobs_unsuccessful ON {schema}.jobs (state, seq) WHERE state IN (4, 5);

-- How many jobs have ended, by queue and state, and of how many bytes of payload and result the
-- completed ones are (0 for other states); what waits and what runs is counted. A row that every
-- writer updates would make them wait for each other until their commits, so they append their
-- differences, and now and then one of them folds these into the totals.
CREATE TABLE {schema}.totals (
    queue text COLLATE "C" NOT NULL,
    state smallint NOT NULL,
    n bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (queue, state)
) WITH (fillfactor = 50);

CREATE TABLE {schema}.differences (
    queue text COLLATE "C" NOT NULL,
    state smallint NOT NULL,
    n bigint NOT NULL,
    bytes bigint NOT NULL DEFAULT 0
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- A queue that is not here is not paused.
CREATE TABLE {schema}.paused (queue text COLLATE "C" PRIMARY KEY);

-- Ids of deleted jobs, known until then, so that a repeated dispatch does not bring a job back.
CREATE TABLE {schema}.gone (
    id text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL,
    until timestamptz NOT NULL
);

CREATE INDEX gone_until ON {schema}.gone (until);

-- The unique keys that are held: by which job, at most until when, and whether as the mark of a
-- throttle, which stays until then whatever becomes of the job. A row that is still held is locked by
-- nobody but the end of its job, see functions/free.sql.
CREATE TABLE {schema}.keys (
    key text COLLATE "C" PRIMARY KEY,
    job_id text COLLATE "C" NOT NULL,
    until timestamptz,
    throttle boolean NOT NULL
);

CREATE INDEX keys_until ON {schema}.keys (until) WHERE until IS NOT NULL;

-- The limits on keys; key is one key, or the beginning of keys followed by *.
CREATE TABLE {schema}.limits (
    key text COLLATE "C" PRIMARY KEY,
    per_second integer,
    concurrent integer
);

-- What has happened to jobs with limits since a claim last looked: a lane has got or lost a waiting
-- job (queue, priority, lane), holds that name a key have ended (key, n), the limit of keys has changed
-- (key, and queue where the look at those keys is to go on), or a claim left something unlooked at (all
-- NULL). Writers only append here, so that they never wait for what follows from it, nor make anybody
-- wait as long as their transactions are open. The four tables below are written by claims alone,
-- one after the other: see functions/hold_limits.sql.
CREATE TABLE {schema}.marks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C",
    priority integer,
    lane uuid,
    key text COLLATE "C",
    n integer
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- Waiting jobs of one queue and one priority that name the same keys are a lane. Its head stands in
-- the order of claims like any other job, and the others are kept back, so that a claim never walks
-- over them. Where a key of the head is full, the lane is parked on that key, and its head kept back too.
-- To let a head stand there is always safe: it costs one more look. What must never be is a lane that
-- stays parked while its key has room; so for each key with room and each queue, no lane of the queue
-- is parked on the key, or one that names it has a head in the order of claims, and that comes before
-- those of all that are parked.
CREATE TABLE {schema}.lanes (
    queue text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    lane uuid NOT NULL,
    limits text[] COLLATE "C",
    head bigint NOT NULL,  -- its seq, and when it is due
    head_at timestamptz NOT NULL,
    parked text COLLATE "C",
    PRIMARY KEY (queue, priority, lane)
) WITH (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX lanes_parked ON {schema}.lanes (parked, queue, priority DESC, head_at, head)
    WHERE parked IS NOT NULL;
CREATE INDEX lanes_exposed ON {schema}.lanes (queue, head_at) WHERE parked IS NULL;

-- How many holds name each key, whether or not a limit governs it, since one may be put at any time;
-- and when lanes that are parked on the key for its rate are to be looked at again.
CREATE TABLE {schema}.holds (
    key text COLLATE "C" PRIMARY KEY,
    n integer NOT NULL,
    free_at timestamptz
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX holds_free_at ON {schema}.holds (free_at) WHERE free_at IS NOT NULL;

-- The claims of the last second that name a key with a rate: how many at which instant.
CREATE TABLE {schema}.claims (
    key text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    n integer NOT NULL,
    PRIMARY KEY (key, at)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX claims_at ON {schema}.claims (at);

-- The attempts that did not complete their job, gone with it. how is JSON as text (`Tried`).
CREATE TABLE {schema}.history (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job bigint NOT NULL,  -- its seq: another job under the same id has another one
    serial bigint NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    attempt integer NOT NULL,
    worker text,
    how text NOT NULL
);

CREATE INDEX history_job ON {schema}.history (job, seq);

-- Schedules; last is the newest tick that has passed. What recurs is in definition, for others to read.
CREATE TABLE {schema}.schedules (
    id text COLLATE "C" PRIMARY KEY,
    revision text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    last timestamptz NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    definition bytea NOT NULL
);

-- What workers say of themselves, for display.
CREATE TABLE {schema}.workers (
    id text COLLATE "C" PRIMARY KEY,
    info text NOT NULL,
    until timestamptz NOT NULL
);

-- The workers that keep a session open for as long as they live: it holds the lock, shared, so that who
-- can have the lock alone knows that the session has ended. `server` is the start of the server on which
-- it was taken: of a row from before nothing is concluded, since a server that was started anew, or that
-- another one has replaced, has ended sessions of workers that live.
CREATE TABLE {schema}.lifelines (
    worker text COLLATE "C" PRIMARY KEY,
    lock bigint NOT NULL,
    server timestamptz NOT NULL
);
