-- Makes the room of dead rows of the jobs usable again. No transaction block can hold it.
-- Whoever finds the table locked, by another vacuum or a change of the schema, leaves it at that. Its
-- empty end is not given back, see the table; no processes are taken from the server. Indexes are gone
-- through where more than a few pages have dead rows, which is the server's default: with a million
-- kept jobs that costs more than the rest. Large values are left to the server.
VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0, PROCESS_TOAST false) {schema}.jobs
