-- All schedules, by id. In: now or NULL for the server's.
-- Out: now in every row, and the schedule; one row without a schedule for none. Times as in
-- job_row.sql.
SELECT n.now, s.id, s.revision, s.definition,
    timestamptz_send(s.created_at), timestamptz_send(s.last), s.paused
FROM (SELECT coalesce($1::timestamptz, clock_timestamp())) AS n (now)
LEFT JOIN {schema}.schedules AS s ON true
ORDER BY s.id
