-- take(at): a claim. Shared by claim and exchange.
--
-- In, from ARGV[at] on: token, worker, lease, limit, max_bytes, again (1 or 0), then name and limit
-- of each queue to the end of ARGV.
-- Out: as parts/showing.lua, then 1 if it stopped since it has passed over so many lanes, else 0.
-- Order: queue by queue as asked; within one by priority, due time, arrival (I11). Each priority
-- in use has a sorted set of its own, so jobs ahead that are not due yet cost nothing.
-- Where no job has limits it writes nothing where it takes nothing, and all at the end: an error on
-- the way takes nothing. A job with limits is the head of its lane (parts/lanes.lua): the lane is
-- changed at once, and what that exposes is taken in its turn.

local PASSED_AT_ONCE = 1000 -- lanes that one script may park

-- I12: a job whose mark is damaged is claimed all the same, so that it can be ended: with a stand-in
-- that says so by its CONTENT. The random token still fences older holds.
local function stand_in(queue, priority, member)
    local id = id_in(member)
    local every = HAS_ERROR + HAS_RESULT + HAS_PROGRESS + HAS_HISTORY
    local mark = {
        PENDING, 0, every, priority, NOW, NOW, NOW, 0, 0, 0, 0, 0, 0, 0, 0,
        call('HSTRLEN', JOBS, id), string.sub(member, 1, 16), string.rep('-', 16),
        '', '', '', '', queue, ''
    }
    local lane = call('HGET', PLACED, id)
    if lane then
        local _, _, at = struct.unpack('>bHc0', lane)
        mark[EXTRAS] = every + HAS_LIMITS
        mark[UNIQUE], mark[LIMITS] = '', string.sub(lane, at)
    end
    return mark
end

local function before(one, other)
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
        table.sort(entries, function(a, b) return before(a.mark, b.mark) end)
    end
    return held
end

-- Due jobs of one queue and priority, as they are read and as lanes expose more of them.
local function read_due(queue, priority, most)
    if lanes_made then
        lanes().newly_exposed() -- it is read now
    end
    local members =
        call('ZRANGEBYSCORE', ready_key(queue, priority), '-inf', NOW_TEXT, 'LIMIT', 0, most)
    return {
        queue = queue, priority = priority, members = members, marks = read_marks(ids_in(members)),
        cut = #members == most, -- there may be more
        again = false, -- something is behind where it was cut: read on
        lower = false, -- something was exposed in another priority
    }
end

-- Put what was exposed since into its place behind `from`.
local function add_exposed(due, from)
    for _, entry in ipairs(lanes().newly_exposed()) do
        local lane, members, marks = entry.lane, due.members, due.marks
        if lane.queue == due.queue and entry.due <= NOW and lane.priority ~= due.priority then
            due.lower = true
        elseif lane.queue == due.queue and entry.due <= NOW then
            local mark = read_mark(id_in(entry.member))
                or stand_in(lane.queue, lane.priority, entry.member)
            local at = from + 1
            while members[at] and not (marks[at] and before(mark, marks[at])) do
                at = at + 1
            end
            if due.cut and not members[at] then
                due.again = true
            else
                for n = #members, at, -1 do
                    marks[n + 1] = marks[n]
                end
                table.insert(members, at, entry.member)
                marks[at] = mark
            end
        end
    end
end

local function take(at)
    local token, worker, lease = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
    local lease_end = int(NOW + lease)
    local limit, max_bytes = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local ids, packed, marks, size, full_up = {}, {}, {}, 0, false
    local passed = 0

    local function fits(mark)
        size = size + mark[SIZE]
        full_up = full_up or #ids >= limit or (#ids > 0 and size > max_bytes)
        return not full_up
    end

    local function give(id, mark, whole)
        ids[#ids + 1], packed[#packed + 1], marks[#marks + 1] = id, whole, mark
    end

    -- Whether no limit holds the job; else its lane is parked.
    local function passes(due, i, mark)
        local lane = lanes().lane_named(lane_name(mark))
        local key = full_key(lane)
        if key then
            lanes().pass_over(lane, due.members[i], key)
            add_exposed(due, i)
            passed = passed + 1
            full_up = full_up or passed >= PASSED_AT_ONCE
            due.again = due.again or due.cut
        end
        return not key
    end

    local function start(id, mark)
        mark[STATE], mark[TOKEN], mark[WORKER] = PROCESSING, token, worker
        mark[LEASE], mark[UNTIL], mark[CLAIMED] = lease, NOW + lease, NOW
        mark[ATTEMPT], mark[SERIAL], mark[UPDATED] = mark[ATTEMPT] + 1, mark[SERIAL] + 1, NOW
        if mark[EXTRAS] ~= 0 and has(mark, HAS_UNIQUE) and unique_of(mark[UNIQUE]).started then
            free_key(id, mark)
        end
        return pack(mark)
    end

    local function take_due(due, wanted)
        local key, queue = ready_key(due.queue, due.priority), due.queue
        local taken, removed, leases = 0, batch_of('ZREM', key), batch_of('ZADD', LEASES)
        local written, members = batch_of('HSET', MARKS), due.members
        local n, i = #leases, 0
        while taken < wanted and not full_up and i < #members do
            i = i + 1
            local member = members[i]
            local id, mark = id_in(member), due.marks[i] or stand_in(queue, due.priority, member)
            local limited = mark[EXTRAS] ~= 0 and has(mark, HAS_LIMITS)
            if not limited or passes(due, i, mark) then
                if not fits(mark) then
                    break
                end
                local whole = start(id, mark)
                taken = taken + 1
                removed[taken + 2] = member
                leases[n + 1], leases[n + 2] = lease_end, member
                written[n + 1], written[n + 2] = id, whole
                n = n + 2
                give(id, mark, whole)
                if limited then
                    lanes().take(lanes().lane_named(lane_name(mark)), member, mark[SERIAL])
                    add_exposed(due, i)
                end
            end
        end
        if taken > 0 then
            left_ready[key] = { queue, due.priority }
            count(PENDING, queue, -taken)
            count(PROCESSING, queue, taken)
        end
        return taken
    end

    -- Of one queue, priority by priority; how many.
    local function take_from(queue, room)
        local taken, levels, n = 0, call('ZRANGE', levels_key(queue), 0, -1), 1
        while levels[n] do
            local wanted = math.min(room - taken, limit - #ids)
            if full_up or wanted <= 0 then
                break
            end
            local due = read_due(queue, tonumber(levels[n]), wanted)
            taken = taken + take_due(due, wanted)
            if due.lower then
                local below = '(' .. int(-due.priority)
                levels, n = call('ZRANGEBYSCORE', levels_key(queue), below, '+inf'), 0
                if due.again then
                    table.insert(levels, 1, int(due.priority))
                end
            elseif due.again then
                n = n - 1
            end
            if due.again then
                flush() -- what is taken must not be read again
            end
            n = n + 1
        end
        return taken
    end

    local not_told = {}
    for i = at + 6, #ARGV, 2 do
        not_told[ARGV[i]] = true
    end
    local more_to_free = free_in_time(not_told)
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
    local asked = {} -- a queue named twice is asked once
    for i = at + 6, #ARGV, 2 do
        local queue = ARGV[i]
        if not full_up and not asked[queue] and call('SISMEMBER', PAUSED, queue) == 0 then
            asked[queue] = true
            take_from(queue, room[i])
        end
    end
    flush()
    local answer = shown(ids, packed, marks)
    answer[6] = (more_to_free or passed >= PASSED_AT_ONCE) and 1 or 0
    return answer
end
