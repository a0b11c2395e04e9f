-- Marks an empty namespace as ours. Out: the schema version of the store.
-- In: ARGV[1] not used, ARGV[2] the version of this code.
-- uses: store

call('SETNX', KEYS[1], ARGV[2])
return call('GET', KEYS[1])
