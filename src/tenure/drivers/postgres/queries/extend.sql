-- Moves the ends of leases. See functions/extend.sql.
SELECT {schema}.extend($1, $2, $3, $4, $5)
