-- Looks for leases that have run out. See functions/expired.sql.
SELECT now, id, serial, token, timestamptz_send(lease_until), lease FROM {schema}.expired($1, $2)
