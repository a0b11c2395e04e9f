-- Lets the leases of workers that are gone end soon. See functions/shorten.sql.
SELECT {schema}.shorten($1, $2)
