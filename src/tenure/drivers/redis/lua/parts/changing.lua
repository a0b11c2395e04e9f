-- What changes jobs that are stored: what is kept beside a mark, and how a job leaves its place. A
-- part of its own since a dispatch needs none of it, and a script makes all its functions for each call.

local function put_extra(key, extra, id, mark, value)
    put('HSET', key, id, value)
    if not has(mark, extra) then
        mark[EXTRAS] = mark[EXTRAS] + extra
    end
end

local function drop_extra(key, extra, id, mark)
    if has(mark, extra) then
        put('HDEL', key, id)
        mark[EXTRAS] = mark[EXTRAS] - extra
    end
end

-- Take a job out of the place of its state; both keep the totals.
local function leave(id, mark)
    local state, member = mark[STATE], mark[SEQ] .. id
    local limited = mark[EXTRAS] ~= 0 and has(mark, HAS_LIMITS)
    if state == PENDING and limited then
        change_lane('leave', id, mark)
    elseif state == PENDING then
        local key = ready_key(mark[QUEUE], mark[PRIORITY])
        put('ZREM', key, member)
        left_ready[key] = { mark[QUEUE], mark[PRIORITY] }
    elseif state == PROCESSING then
        put('ZREM', LEASES, member)
        if limited then
            change_lane('give_back', id, mark)
        end
    else
        put('ZREM', ended_key(state, mark[QUEUE]), member)
    end
    count(state, mark[QUEUE], -1)
end

-- A change of state but for a claim ends the hold, and an end the hold on the unique key (I8).
local function become(id, mark, state)
    leave(id, mark)
    if state >= COMPLETED and mark[EXTRAS] ~= 0 and has(mark, HAS_UNIQUE) then
        keys().free(id, mark)
    end
    mark[STATE] = state
    mark[HELD], mark[UNTIL], mark[LEASE] = '', 0, 0
    mark[FINISHED] = state >= COMPLETED and NOW or 0
    enter(id, mark)
end
