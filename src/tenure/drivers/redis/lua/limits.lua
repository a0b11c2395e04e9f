-- All limits. In: nothing. Out: flat, each key with '<per second>:<concurrent>'.
-- uses: store, limits

return call('HGETALL', DEFINITIONS)
