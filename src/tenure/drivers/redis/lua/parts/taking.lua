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

-- The token behind its length, the instant, the worker.
local function held_text(token, worker)
    return struct.pack('>Bc0I8', #token, token, NOW) .. worker
end

-- Due jobs of one queue and priority, as they are read and as lanes expose more of them.
local function read_due(queue, priority, most)
    if lanes_made then
        lanes().newly_exposed() -- it is read now
    end
    local key, members, ids = ready_key(queue, priority)
    repeat
        members = call('ZRANGEBYSCORE', key, '-inf', NOW_TEXT, 'LIMIT', 0, most)
        ids = ids_in(members)
    until not drop_nameless(key, members, ids)
    return {
        queue = queue, priority = priority, members = members, ids = ids,
        packed = read_all(MARKS, ids), -- false where there is none
        marks = {}, -- unpacked, of those that were looked at
        cut = #members == most, -- there may be more
        again = false, -- something is behind where it was cut: read on
        lower = false, -- something was exposed in another priority
    }
end

-- What a claim makes of the head of a waiting job without unique key and limits; false for others.
local function claimed_head(claim, head)
    local f = head_fields(head)
    return f and f[1] == PENDING and f[3] % 32 < 8 and {
        has_extras = f[3] % 8 ~= 0,
        text = packed_head(
            PROCESSING, f[2], f[3], f[4], NOW + claim.lease, claim.lease, f[7] + 1, f[8], f[9] + 1,
            f[10], claim.held, f[12], f[13]
        ),
    }
end

-- The mark of a job after the claim, and whether it has extras, if the mark is the usual one.
local function usual(claim, old)
    local head, kind = pieces(old)
    if not head then
        return nil
    end
    local new = claim.heads[head]
    if new == nil then
        new = claimed_head(claim, head)
        claim.heads[head] = new
    end
    if claim.plain[kind] == nil then
        claim.plain[kind] = plain_kind(kind) ~= nil
    end
    if new and claim.plain[kind] then
        return NOW_PACKED .. string.sub(old, 9, 52) .. new.text .. kind, new.has_extras
    end
end

local function take_due(claim, due, wanted)
    local key, members, i, taken = ready_key(due.queue, due.priority), due.members, 0, 0
    local removed = batch_of('ZREM', key) -- the first write, since a removal is never refused
    local leases, written = batch_of('ZADD', LEASES), batch_of('HSET', MARKS)
    while taken < wanted and not claim.full_up and i < #members do
        i = i + 1
        local member, id, old = members[i], due.ids[i], due.packed[i]
        local whole, has_extras
        if old then
            whole, has_extras = usual(claim, old)
        end
        if not whole then
            whole = take_other(claim, due, i)
        elseif fits(claim, struct.unpack('>I4', old, 41)) then
            give(claim, id, whole, has_extras)
        else
            break
        end
        if whole then
            taken = taken + 1
            removed[taken + 2] = member
            add(written, id, whole)
        end
    end
    for n = taken + 2, 3, -1 do -- the last first: a small sorted set looks for a place from its front
        add(leases, claim.lease_end, removed[n])
    end
    if taken > 0 then
        left_ready[key] = { due.queue, due.priority }
        count(PENDING, due.queue, -taken)
        count(PROCESSING, due.queue, taken)
        claim.removals[#claim.removals + 1] = removed
    end
    return taken
end

-- Of one queue, priority by priority.
local function take_from(claim, queue, room)
    local taken, levels, n = 0, call('ZRANGE', levels_key(queue), 0, -1), 1
    while levels[n] do
        local wanted = math.min(room - taken, claim.limit - #claim.ids)
        if claim.full_up or wanted <= 0 then
            break
        end
        local due = read_due(queue, tonumber(levels[n]), wanted)
        taken = taken + take_due(claim, due, wanted)
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
    local token, lease, queues = ARGV[at], tonumber(ARGV[at + 2]), {}
    local claim = {
        token = token, lease = lease, held = held_text(token, ARGV[at + 1]),
        lease_end = int(NOW + lease), limit = tonumber(ARGV[at + 3]),
        max_bytes = tonumber(ARGV[at + 4]),
        heads = {}, plain = {}, -- by the head of a waiting job, by kind
        ids = {}, packed = {}, with_extras = {}, size = 0, -- what is given
        removals = {}, passed = 0, full_up = false,
    }
    for i = at + 6, #ARGV, 2 do
        queues[#queues + 1] = { name = ARGV[i], room = tonumber(ARGV[i + 1]) }
    end
    local more_to_free = call('EXISTS', FREEING) == 1 and freeing().free_in_time(at + 6)
    if ARGV[at + 5] == '1' then
        give_held(claim, queues)
    end
    local asked = {} -- a queue named twice is asked once
    for _, queue in ipairs(queues) do
        local name = queue.name
        if not claim.full_up and not asked[name] and call('SISMEMBER', PAUSED, name) == 0 then
            asked[name] = true
            take_from(claim, name, queue.room)
        end
    end
    if not lanes_made then
        remove_by_rank(claim.removals)
    end
    flush()
    local answer = shown(claim.ids, claim.packed, claim.with_extras)
    answer[6] = (more_to_free or claim.passed >= PASSED_AT_ONCE) and 1 or 0
    return answer
end
