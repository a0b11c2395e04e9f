-- take_other(claim, due, i): what a claim does with a job that it has met and that is not the usual
-- one: it is damaged, or has a unique key or limits. `claim` and `due` are those of parts/taking.lua.
-- held_by_token(token): for a claim whose answer was lost.

local PASSED_AT_ONCE = 1000 -- lanes that one script may park

-- I12: a job whose mark is damaged is claimed all the same, so that it can be ended: with a stand-in
-- that says so by its CONTENT. The random token still fences older holds.
local function stand_in(queue, priority, member)
    local id = id_in(member)
    local every = HAS_ERROR + HAS_RESULT + HAS_PROGRESS + HAS_HISTORY
    local mark = {
        NOW, NOW, NOW, string.sub(member, 1, 16), call('HSTRLEN', JOBS, id), string.rep('-', 8), 0,
        PENDING, 0, every, 0, 0, 0, 0, 0, 0, 0, '', '', '', priority, queue, '',
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
            if mark and mark[STATE] == PROCESSING and token_of(mark) == token then
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

local function mark_at(due, i)
    local mark = due.marks[i]
    if not mark then
        local packed = due.packed[i]
        mark = packed and unpacked(packed) or stand_in(due.queue, due.priority, due.members[i])
        due.marks[i] = mark
    end
    return mark
end

-- Put what was exposed since into its place behind `from`.
local function add_exposed(due, from)
    for _, entry in ipairs(lanes().newly_exposed()) do
        local lane, members, id = entry.lane, due.members, id_in(entry.member)
        if lane.queue == due.queue and entry.due <= NOW and lane.priority ~= due.priority then
            due.lower = true
        elseif lane.queue == due.queue and entry.due <= NOW then
            local mark = read_mark(id) or stand_in(lane.queue, lane.priority, entry.member)
            local at = from + 1
            while members[at] and not before(mark, mark_at(due, at)) do
                at = at + 1
            end
            if due.cut and not members[at] then
                due.again = true
            else
                for n = #members, at, -1 do
                    due.packed[n + 1], due.marks[n + 1] = due.packed[n], due.marks[n]
                end
                table.insert(members, at, entry.member)
                table.insert(due.ids, at, id)
                due.packed[at], due.marks[at] = false, mark
            end
        end
    end
end

-- Whether no limit holds the job; else its lane is parked.
local function passes(claim, due, i, mark)
    local lane = lanes().lane_named(lane_name(mark))
    local key = lanes().full_key(lane)
    if key then
        lanes().pass_over(lane, due.members[i], key)
        add_exposed(due, i)
        claim.passed = claim.passed + 1
        claim.full_up = claim.full_up or claim.passed >= PASSED_AT_ONCE
        due.again = due.again or due.cut
    end
    return not key
end

-- Take the job, unless a limit holds it or it does not fit; its mark.
local function take_other(claim, due, i)
    local mark, id = mark_at(due, i), due.ids[i]
    local limited = mark[EXTRAS] ~= 0 and has(mark, HAS_LIMITS)
    if limited and not passes(claim, due, i, mark) or not fits(claim, mark[SIZE]) then
        return nil
    end
    mark[STATE], mark[HELD], mark[LEASE] = PROCESSING, claim.held, claim.lease
    mark[UNTIL], mark[UPDATED] = NOW + claim.lease, NOW
    mark[ATTEMPT], mark[SERIAL] = mark[ATTEMPT] + 1, mark[SERIAL] + 1
    if mark[EXTRAS] ~= 0 and has(mark, HAS_UNIQUE) then
        keys().free_started(id, mark)
    end
    local whole = pack(mark)
    give(claim, id, whole, mark[EXTRAS] % 8 ~= 0)
    if limited then
        lanes().take(lanes().lane_named(lane_name(mark)), due.members[i], mark[SERIAL])
        add_exposed(due, i)
    end
    return whole
end

-- Give what the token of a claim that is asked again holds already, and take it off the room.
local function give_held(claim, queues)
    local held, room = held_by_token(claim.token), {}
    for _, entry in ipairs(queues) do
        local left = entry.room
        for _, one in ipairs(held[entry.name] or {}) do
            if left <= 0 or not fits(claim, one.mark[SIZE]) then
                break
            end
            left = left - 1
            give(claim, one.id, pack(one.mark), one.mark[EXTRAS] % 8 ~= 0)
        end
        entry.room = left
        held[entry.name] = nil
    end
end
