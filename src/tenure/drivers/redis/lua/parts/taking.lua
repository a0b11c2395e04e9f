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

-- The token behind its length, the instant, the worker.
local function held_text(token, worker)
    return struct.pack('>Bc0I8', #token, token, NOW) .. worker
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

-- Due jobs of one queue and priority, as they are read and as lanes expose more of them.
local function read_due(queue, priority, most)
    if lanes_made then
        lanes().newly_exposed() -- it is read now
    end
    local members =
        call('ZRANGEBYSCORE', ready_key(queue, priority), '-inf', NOW_TEXT, 'LIMIT', 0, most)
    local ids = ids_in(members)
    return {
        queue = queue, priority = priority, members = members, ids = ids,
        packed = read_all(MARKS, ids), -- false where there is none
        marks = {}, -- unpacked, of those that were looked at
        cut = #members == most, -- there may be more
        again = false, -- something is behind where it was cut: read on
        lower = false, -- something was exposed in another priority
    }
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

-- What a claim makes of the head of a waiting job without unique key and limits; false for others.
local function claimed_head(head, lease, held)
    local f = head_fields(head)
    return f and f[1] == PENDING and f[3] % 32 < 8 and {
        has_extras = f[3] % 8 ~= 0,
        text = packed_head(
            PROCESSING, f[2], f[3], f[4], NOW + lease, lease, f[7] + 1, f[8], f[9] + 1, f[10],
            held, f[12], f[13]
        ),
    }
end

-- Where no limit is about, what was taken of each place are its first. Removing these by their rank is
-- one seek for all of them, and short for replicas and the log.
local function remove_by_rank(removals)
    for _, batch in ipairs(removals) do
        local taken = #batch - 2
        for i = #batch, 3, -1 do
            batch[i] = nil
        end
        batch[1] = 'ZREMRANGEBYRANK'
        add(batch, '0', int(taken - 1))
    end
end

local function take(at)
    local token, lease = ARGV[at], tonumber(ARGV[at + 2])
    local held_now = held_text(token, ARGV[at + 1])
    local lease_end = int(NOW + lease)
    local limit, max_bytes = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local ids, packed, with_extras, size, full_up = {}, {}, {}, 0, false
    local passed, removals = 0, {}
    local claimed, plain = {}, {} -- by head, by kind

    local function fits(bytes)
        size = size + bytes
        full_up = full_up or #ids >= limit or (#ids > 0 and size > max_bytes)
        return not full_up
    end

    local function give(id, whole, has_extras)
        local n = #ids + 1
        ids[n], packed[n] = id, whole
        if has_extras then
            with_extras[#with_extras + 1] = n
        end
    end

    -- Whether no limit holds the job; else its lane is parked.
    local function passes(due, i, mark)
        local lane = lanes().lane_named(lane_name(mark))
        local key = lanes().full_key(lane)
        if key then
            lanes().pass_over(lane, due.members[i], key)
            add_exposed(due, i)
            passed = passed + 1
            full_up = full_up or passed >= PASSED_AT_ONCE
            due.again = due.again or due.cut
        end
        return not key
    end

    -- The mark of a job after the claim, and whether it has extras, if the mark is the usual one.
    local function usual(old)
        local head, kind = pieces(old)
        if not head then
            return nil
        elseif claimed[head] == nil then
            claimed[head] = claimed_head(head, lease, held_now)
        end
        if plain[kind] == nil then
            plain[kind] = plain_kind(kind) ~= nil
        end
        local new = claimed[head]
        if new and plain[kind] then
            return NOW_PACKED .. string.sub(old, 9, 52) .. new.text .. kind, new.has_extras
        end
    end

    -- Take a job of any other kind, unless a limit holds it or it does not fit; its mark.
    local function take_other(due, i)
        local mark, id = mark_at(due, i), due.ids[i]
        local limited = mark[EXTRAS] ~= 0 and has(mark, HAS_LIMITS)
        if limited and not passes(due, i, mark) or not fits(mark[SIZE]) then
            return nil
        end
        mark[STATE], mark[HELD], mark[LEASE] = PROCESSING, held_now, lease
        mark[UNTIL], mark[UPDATED] = NOW + lease, NOW
        mark[ATTEMPT], mark[SERIAL] = mark[ATTEMPT] + 1, mark[SERIAL] + 1
        if mark[EXTRAS] ~= 0 and has(mark, HAS_UNIQUE) then
            keys().free_started(id, mark)
        end
        local whole = pack(mark)
        give(id, whole, mark[EXTRAS] % 8 ~= 0)
        if limited then
            lanes().take(lanes().lane_named(lane_name(mark)), due.members[i], mark[SERIAL])
            add_exposed(due, i)
        end
        return whole
    end

    local function take_due(due, wanted)
        local key, members, i, taken = ready_key(due.queue, due.priority), due.members, 0, 0
        local removed = batch_of('ZREM', key) -- the first write, since a removal is never refused
        local leases, written = batch_of('ZADD', LEASES), batch_of('HSET', MARKS)
        while taken < wanted and not full_up and i < #members do
            i = i + 1
            local member, id, old = members[i], due.ids[i], due.packed[i]
            local whole, has_extras
            if old then
                whole, has_extras = usual(old)
            end
            if not whole then
                whole = take_other(due, i)
            elseif fits(struct.unpack('>I4', old, 41)) then
                give(id, whole, has_extras)
            else
                break
            end
            if whole then
                taken = taken + 1
                removed[taken + 2] = member
                add(leases, lease_end, member)
                add(written, id, whole)
            end
        end
        if taken > 0 then
            left_ready[key] = { due.queue, due.priority }
            count(PENDING, due.queue, -taken)
            count(PROCESSING, due.queue, taken)
            removals[#removals + 1] = removed
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

    local more_to_free = call('EXISTS', FREEING) == 1 and freeing().free_in_time(at + 6)
    local held = ARGV[at + 5] == '1' and held_by_token(token) or {}
    local room = {}
    for i = at + 6, #ARGV, 2 do
        room[i] = tonumber(ARGV[i + 1])
        for _, entry in ipairs(held[ARGV[i]] or {}) do
            if room[i] <= 0 or not fits(entry.mark[SIZE]) then
                break
            end
            room[i] = room[i] - 1
            give(entry.id, pack(entry.mark), entry.mark[EXTRAS] % 8 ~= 0)
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
    if not lanes_made then
        remove_by_rank(removals)
    end
    flush()
    local answer = shown(ids, packed, with_extras)
    answer[6] = (more_to_free or passed >= PASSED_AT_ONCE) and 1 or 0
    return answer
end
