-- Marks an empty namespace as ours. Out: the schema version of the store.
-- In: ARGV[1] not used, ARGV[2] the version of this code, ARGV[3] the oldest version that is to be
-- raised to it; empty: none is.
-- uses: store

call('SETNX', KEYS[1], ARGV[2])
if ARGV[3] ~= '' then
  local found = tonumber(call('GET', KEYS[1]))
  if found >= tonumber(ARGV[3]) and found < tonumber(ARGV[2]) then
    call('SET', KEYS[1], ARGV[2])
  end
end
return call('GET', KEYS[1])
