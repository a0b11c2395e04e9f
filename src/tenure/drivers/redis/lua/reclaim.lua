-- Makes jobs pending again whose lease has run out, longest ago first; of given holds also those that
-- end later than their whole lease from now: the clock was set back since.
-- In: how many at most, what their histories get, how many delays, the delays, then '*' for any
--     hold, or id, serial, token of each hold that may be ended.
-- Out: id, serial and token of each hold that this ended, flat.
-- Begins with a write that a server without free memory refuses: an outcome that waits for memory
-- under its hold must not be replaced meanwhile.
-- uses: store, marks, places, changing, limits, lanes, history

batch_of('HSET', MARKS)
local limit, how, delays, at = tonumber(ARGV[2]), ARGV[3], {}, 5 + tonumber(ARGV[4])
for i = 5, at - 1 do
    delays[#delays + 1] = tonumber(ARGV[i])
end

-- `due` are entries {id, mark}: damaged ones are left out.
local due = {}
local function look_at(ids, wanted)
    for n, mark in pairs(read_marks(ids)) do
        if mark and mark[STATE] == PROCESSING and wanted(n, mark) then
            due[#due + 1] = { id = ids[n], mark = mark }
        end
    end
end

if ARGV[at] == '*' then
    local members = call('ZRANGEBYSCORE', LEASES, '-inf', NOW_TEXT, 'LIMIT', 0, limit)
    local ids = ids_in(members)
    look_at(ids, function(_, mark) return mark[UNTIL] <= NOW end)
    if #due < #ids then
        -- A lease without a readable mark would stand at the head for ever.
        local whole = {}
        for _, entry in ipairs(due) do
            whole[entry.id] = true
        end
        for i, id in ipairs(ids) do
            if not whole[id] then
                put('ZREM', LEASES, members[i])
                local lane = call('HGET', PLACED, id)
                if lane then -- nor may it keep a place of its keys
                    lane_changes[#lane_changes + 1] = { 'give_back', lane, members[i] }
                end
            end
        end
    end
else
    local ids = {}
    for i = at, #ARGV, 3 do
        ids[#ids + 1] = ARGV[i]
    end
    look_at(ids, function(n, mark)
        local i = at + 3 * (n - 1)
        return held_by(mark, tonumber(ARGV[i + 1]), ARGV[i + 2])
            and (mark[UNTIL] <= NOW or mark[UNTIL] > NOW + mark[LEASE])
    end)
end
table.sort(due, function(a, b)
    if a.mark[UNTIL] ~= b.mark[UNTIL] then
        return a.mark[UNTIL] < b.mark[UNTIL]
    end
    return a.mark[SEQ] < b.mark[SEQ]
end)

local ended = {}
for n = 1, math.min(limit, #due) do
    local id, mark = due[n].id, due[n].mark
    ended[#ended + 1] = id
    ended[#ended + 1] = int(mark[SERIAL])
    ended[#ended + 1] = token_of(mark)
    remember(id, mark, how)
    mark[RUN_AT] = NOW + delays[math.min(mark[STALLS] + 1, #delays)]
    mark[SERIAL], mark[STALLS] = mark[SERIAL] + 1, mark[STALLS] + 1
    become(id, mark, PENDING)
    put_mark(id, mark)
end
flush()
return ended
