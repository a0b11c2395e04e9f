-- The attempts that did not complete a job, oldest first. In: id. Out: as parts/history.lua packs them.
-- uses: store

return call('LRANGE', base .. 'history:' .. ARGV[2], 0, -1)
