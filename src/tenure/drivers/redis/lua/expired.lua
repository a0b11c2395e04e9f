-- Looks for leases that have run out, longest ago first. In: how many at most.
-- Out: now, ids, packed marks. Changes nothing.
-- uses: store

local members = call('ZRANGEBYSCORE', LEASES, '-inf', NOW_TEXT, 'LIMIT', 0, ARGV[2])
local ids = ids_in(members)
return { NOW_TEXT, ids, #ids > 0 and call('HMGET', MARKS, unpack(ids)) or {} }
