-- Looks for leases that have run out, longest ago first, and after them for those that end later than
-- their whole lease from now: the clock was set back since. In: how many at most.
-- Out: now, ids, packed marks. Changes nothing.
-- uses: store, marks

local limit = tonumber(ARGV[2])
local ids = ids_in(call('ZRANGEBYSCORE', LEASES, '-inf', NOW_TEXT, 'LIMIT', 0, limit))

local last = ids_in(call('ZREVRANGEBYSCORE', LEASES, '+inf', '(' .. NOW_TEXT, 'LIMIT', 0, limit))
local marks, ahead = read_marks(last), {}
for n, id in ipairs(last) do
    local mark = marks[n]
    if mark and mark[UNTIL] > NOW + mark[LEASE] then
        ahead[#ahead + 1] = id
    end
end
for n = #ahead, 1, -1 do -- the last was the first to end
    if #ids < limit then
        ids[#ids + 1] = ahead[n]
    end
end
return { NOW_TEXT, ids, #ids > 0 and call('HMGET', MARKS, unpack(ids)) or {} }
