-- Looks for leases that have run out. See functions/expired.sql.
SELECT * FROM {schema}.expired($1, $2)
