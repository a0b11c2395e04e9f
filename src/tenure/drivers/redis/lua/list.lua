-- Jobs that match, newest arrival first.
-- In: the seq below which to look ('+inf' for all), how many to look at, how many at most, then
--     state, queue and name ('' for any).
-- Out: as parts/showing.lua, then the seq to go on below ('' at the end).
-- Looks at a bounded number of marks, and reads payloads of matching jobs only.
-- uses: store, marks, showing

local AT_ONCE = 100 -- marks, so that a page of jobs that all match needs no others
local below, most, limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local state, queue, name = ARGV[5], ARGV[6], ARGV[7]
local found = call('ZREVRANGEBYSCORE', ARRIVALS, '(' .. below, '-inf', 'LIMIT', 0, most)
local ids, whole, with_extras, seen = {}, {}, {}, 0
while seen < #found and #ids < limit do
    local marks = read_all(MARKS, { unpack(found, seen + 1, math.min(seen + AT_ONCE, #found)) })
    for _, packed in ipairs(marks) do
        if #ids >= limit then
            break
        end
        local mark = packed and unpacked(packed)
        seen = seen + 1
        if mark and (state == '' or mark[STATE] == tonumber(state))
            and (queue == '' or mark[QUEUE] == queue) and (name == '' or mark[NAME] == name) then
            ids[#ids + 1], whole[#whole + 1] = found[seen], packed
            if mark[EXTRAS] % 8 ~= 0 then
                with_extras[#with_extras + 1] = #ids
            end
        end
    end
end
local going_on = ''
if seen < #found or #found == most then
    going_on = seen > 0 and int(tonumber(call('ZSCORE', ARRIVALS, found[seen]))) or below
end
local page = shown(ids, whole, with_extras)
page[6] = going_on
return page
