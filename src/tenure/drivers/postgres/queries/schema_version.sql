-- Which version the schema has. Out: one number; no row before the first migration has ended.
SELECT version FROM {schema}.version
