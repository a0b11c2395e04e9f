-- Ties a worker to the session. See functions/tie.sql.
SELECT {schema}.tie($1, $2)
