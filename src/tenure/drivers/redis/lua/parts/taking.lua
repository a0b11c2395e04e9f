-- take(at): a claim. Shared by claim and exchange.
--
-- In, from ARGV[at] on: token, worker, lease, limit, max_bytes, again (1 or 0), then name and limit
-- of each queue to the end of ARGV.
-- Out: as parts/showing.lua.
-- Order: queue by queue as asked; within one by priority, due time, arrival (I11). Each priority
-- in use has a sorted set of its own, so jobs ahead that are not due yet cost nothing.
-- Writes nothing where it takes nothing, and all at the end: an error on the way takes nothing.

-- I12: a job whose mark is damaged is claimed all the same, so that it can be ended: with a stand-in
-- that says so by its CONTENT. The random token still fences older holds.
local function stand_in(queue, priority, member)
    local every = HAS_ERROR + HAS_RESULT + HAS_PROGRESS + HAS_HISTORY
    return {
        PENDING, 0, every, priority, NOW, NOW, NOW, 0, 0, 0, 0, 0, 0, 0, 0,
        call('HSTRLEN', JOBS, id_in(member)), string.sub(member, 1, 16), string.rep('-', 16),
        '', '', '', '', queue, ''
    }
end

local function before(a, b)
    local one, other = a.mark, b.mark
    if one[PRIORITY] ~= other[PRIORITY] then
        return one[PRIORITY] > other[PRIORITY]
    elseif one[RUN_AT] ~= other[RUN_AT] then
        return one[RUN_AT] < other[RUN_AT]
    end
    return one[SEQ] < other[SEQ]
end

-- What the token holds already, by queue, in the order of claims. Looks at all running jobs; only a
-- claim whose answer was lost asks for it.
local function held_by_token(token)
    local held = {}
    for from = 0, call('ZCARD', LEASES) - 1, CHUNK do
        local ids = ids_in(call('ZRANGE', LEASES, from, from + CHUNK - 1))
        local marks = read_marks(ids)
        for i, id in ipairs(ids) do
            local mark = marks[i]
            if mark and mark[STATE] == PROCESSING and mark[TOKEN] == token then
                held[mark[QUEUE]] = held[mark[QUEUE]] or {}
                table.insert(held[mark[QUEUE]], { id = id, mark = mark })
            end
        end
    end
    for _, entries in pairs(held) do
        table.sort(entries, before)
    end
    return held
end

local function take(at)
    local token, worker, lease = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
    local lease_end = int(NOW + lease)
    local limit, max_bytes = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local ids, packed, marks, size, full = {}, {}, {}, 0, false

    local function fits(mark)
        size = size + mark[SIZE]
        full = full or #ids >= limit or (#ids > 0 and size > max_bytes)
        return not full
    end

    local function give(id, mark, whole)
        ids[#ids + 1], packed[#packed + 1], marks[#marks + 1] = id, whole, mark
    end

    local function take_due(queue, priority, wanted)
        local key = ready_key(queue, priority)
        local members = call('ZRANGEBYSCORE', key, '-inf', NOW_TEXT, 'LIMIT', 0, wanted)
        local found = read_marks(ids_in(members))
        local taken, removed, leases = 0, batch_of('ZREM', key), batch_of('ZADD', LEASES)
        local written = batch_of('HSET', MARKS)
        local n = #leases
        for i, member in ipairs(members) do
            local id, mark = id_in(member), found[i] or stand_in(queue, priority, member)
            if not fits(mark) then
                break
            end
            mark[STATE], mark[TOKEN], mark[WORKER] = PROCESSING, token, worker
            mark[LEASE], mark[UNTIL], mark[CLAIMED] = lease, NOW + lease, NOW
            mark[ATTEMPT], mark[SERIAL], mark[UPDATED] = mark[ATTEMPT] + 1, mark[SERIAL] + 1, NOW
            if has_tail(mark) and has(mark, HAS_UNIQUE) and unique_of(mark[UNIQUE]).started then
                free_key(id, mark)
            end
            local whole = pack(mark)
            taken = taken + 1
            removed[taken + 2] = member
            leases[n + 1], leases[n + 2] = lease_end, member
            written[n + 1], written[n + 2] = id, whole
            n = n + 2
            give(id, mark, whole)
        end
        if taken > 0 then
            left_ready[key] = { queue, priority }
            count(PENDING, queue, -taken)
            count(PROCESSING, queue, taken)
        end
        return taken
    end

    local held = ARGV[at + 5] == '1' and held_by_token(token) or {}
    local room = {}
    for i = at + 6, #ARGV, 2 do
        room[i] = tonumber(ARGV[i + 1])
        for _, entry in ipairs(held[ARGV[i]] or {}) do
            if room[i] <= 0 or not fits(entry.mark) then
                break
            end
            room[i] = room[i] - 1
            give(entry.id, entry.mark, pack(entry.mark))
        end
        held[ARGV[i]] = nil
    end
    local asked = {} -- nothing is written before the end, so a queue named twice is asked once
    for i = at + 6, #ARGV, 2 do
        local queue = ARGV[i]
        if not full and not asked[queue] and call('SISMEMBER', PAUSED, queue) == 0 then
            asked[queue] = true
            for _, priority in ipairs(call('ZRANGE', levels_key(queue), 0, -1)) do
                local wanted = math.min(room[i], limit - #ids)
                if full or wanted <= 0 then
                    break
                end
                room[i] = room[i] - take_due(queue, tonumber(priority), wanted)
            end
        end
    end
    flush()
    return shown(ids, packed, marks)
end
