-- Indexes that were being built when their builder died. In: name of the schema. Out: their names.
SELECT c.relname
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND NOT i.indisvalid
