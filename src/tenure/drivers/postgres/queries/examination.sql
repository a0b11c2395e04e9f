-- What may lose jobs or slow them down. In: nothing. Out: version number, fsync, synchronous_commit,
-- full_page_writes, whether it is a standby, connections, how many there may be, and of the oldest
-- open transaction of this database, other than this one, its age in seconds and its process, where
-- there is one and the role may see it; the server's time.
SELECT
    current_setting('server_version_num')::integer,
    current_setting('fsync'),
    current_setting('synchronous_commit'),
    current_setting('full_page_writes'),
    pg_is_in_recovery(),
    (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::integer,
    extract(epoch FROM clock_timestamp() - oldest.xact_start)::float8,
    oldest.pid,
    clock_timestamp()
FROM (SELECT) AS one
LEFT JOIN LATERAL (
    SELECT xact_start, pid FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
    ORDER BY xact_start
    LIMIT 1
) AS oldest ON true
