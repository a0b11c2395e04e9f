-- Whether there is anything to claim. See functions/claimable.sql.
SELECT {schema}.claimable($1)
