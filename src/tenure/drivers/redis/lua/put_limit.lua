-- Stores a limit, in the place of one with the same key. In: key, '<per second>:<concurrent>'.
-- Out: nothing. Jobs that wait for a key with room now are exposed; claims do what is left of it.
-- uses: store, limits, lanes, freeing

call('HSET', DEFINITIONS, ARGV[2], ARGV[3])
limit_changed(ARGV[2])
flush()
