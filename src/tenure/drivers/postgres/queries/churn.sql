-- What the server counts for the table of jobs.
-- Out: its dead rows; how many rows have died so far; how many vacuums it has had, of whomever; how many
--      seconds ago the last one ended, NULL for none. What others have just written may be missing.
SELECT
    pg_stat_get_dead_tuples(jobs.oid),
    pg_stat_get_tuples_updated(jobs.oid) + pg_stat_get_tuples_deleted(jobs.oid),
    pg_stat_get_vacuum_count(jobs.oid) + pg_stat_get_autovacuum_count(jobs.oid),
    extract(epoch FROM clock_timestamp() - greatest(
        pg_stat_get_last_vacuum_time(jobs.oid), pg_stat_get_last_autovacuum_time(jobs.oid)
    ))::double precision
FROM (SELECT '{schema}.jobs'::regclass::oid) AS jobs (oid)
