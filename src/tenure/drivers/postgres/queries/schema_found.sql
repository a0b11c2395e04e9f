-- What there is of ours. In: name of the schema. Out: whether the schema is there, whether its table
-- of the version is.
SELECT
    EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1),
    EXISTS (
        SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'version' AND c.relkind = 'r'
    )
