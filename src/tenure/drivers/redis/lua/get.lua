-- One job. In: id. Out: as parts/showing.lua, of one job or none.
-- uses: store, marks, showing

local packed = call('HGET', MARKS, ARGV[2])
local mark = packed and unpacked(packed)
if not mark then
    return shown({}, {}, {})
end
return shown({ ARGV[2] }, { packed }, mark[EXTRAS] % 8 ~= 0 and { 1 } or {})
