-- Whole jobs in the order of arrival.
-- In: the seq to go on after, the last seq ('' for the newest), how many at most, bytes of payload and
--     result at most beside the first.
-- Out: as parts/showing.lua, then the last seq, the seq to go on after ('' at the end), for jobs with a
--     past {position, history}, for jobs that hold their unique key {position, what `unique` has of it},
--     and the ids of those whose mark cannot be read.
-- uses: store, marks, showing, unique

local AT_ONCE = 100 -- marks
local after, last, limit, most = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if last == '' then
    local newest = call('ZREVRANGE', ARRIVALS, 0, 0, 'WITHSCORES')
    last = newest[2] and int(tonumber(newest[2])) or '0'
end
local found = call('ZRANGEBYSCORE', ARRIVALS, '(' .. after, last, 'LIMIT', 0, limit + 1)
local ids, whole, with_extras, histories, held, unreadable = {}, {}, {}, {}, {}, {}
local seen, bytes, full = 0, 0, false

local function look_beside(id, mark, n)
    if mark[EXTRAS] % 8 ~= 0 then
        with_extras[#with_extras + 1] = n
    end
    if has(mark, HAS_HISTORY) then
        histories[#histories + 1] = { n, call('LRANGE', base .. 'history:' .. id, 0, -1) }
    end
    if has(mark, HAS_UNIQUE) then
        local entry = call('HGET', UNIQUE_KEYS, keys().of(mark[UNIQUE]).key)
        local ends = entry and tonumber(string.sub(entry, 1, 16)) or 0
        if entry and string.sub(entry, 18) == id and (ends == 0 or ends > NOW) then
            held[#held + 1] = { n, entry }
        end
    end
end

while seen < #found and seen < limit and not full do
    local to = math.min(seen + AT_ONCE, #found, limit)
    for _, packed in ipairs(read_all(MARKS, { unpack(found, seen + 1, to) })) do
        local id, mark = found[seen + 1], packed and unpacked(packed)
        local size = mark and mark[SIZE] or 0
        if mark and has(mark, HAS_RESULT) then
            size = size + call('HSTRLEN', RESULTS, id)
        end
        if #ids > 0 and bytes + size > most then
            full = true
            break
        end
        seen, bytes = seen + 1, bytes + size
        if mark then
            ids[#ids + 1], whole[#whole + 1] = id, packed
            look_beside(id, mark, #ids)
        elseif packed then
            unreadable[#unreadable + 1] = id
        end
    end
end
local page = shown(ids, whole, with_extras)
page[6], page[7] = last, ''
if seen < #found then
    page[7] = int(tonumber(call('ZSCORE', ARRIVALS, found[seen])))
end
page[8], page[9], page[10] = histories, held, unreadable
return page
