-- Lets current holds end a lease from now. In: lease, then id, serial, token for each.
-- Out: one number for each: 0 kept, 1 lost, 2 kept and asked to cancel.
-- A server without free memory refuses scripts that begin with a write that needs some. An extension
-- begins with a removal: it needs none, and whoever is at work must not lose its jobs.
-- uses: store, marks

local lease, ids, answers = tonumber(ARGV[2]), {}, {}
for i = 3, #ARGV, 3 do
    ids[#ids + 1] = ARGV[i]
end
local marks = read_marks(ids)
for n, id in ipairs(ids) do
    local mark = marks[n]
    if mark and held_by(mark, tonumber(ARGV[3 * n + 1]), ARGV[3 * n + 2]) then
        mark[UNTIL], mark[LEASE] = NOW + lease, lease
        put('ZREM', LEASES, mark[SEQ] .. id)
        put('ZADD', LEASES, int(mark[UNTIL]), mark[SEQ] .. id)
        put('HSET', MARKS, id, pack(mark)) -- not put_mark: an extension is no change
        answers[n] = mark[CANCEL] == 1 and 2 or 0
    else
        answers[n] = 1
    end
end
flush()
return answers
