-- enter(id, mark), shift(id, mark): put a job into the place of its state. Put writes; the caller
-- flushes. Parts that do the same for the usual jobs of a batch at once: storing, settling, taking.

-- Which jobs are held back by a limit together (see parts/lanes.lua).
local function lane_name(mark)
    local queue = mark[QUEUE]
    return struct.pack('>bHc0', mark[PRIORITY], #queue, queue) .. mark[LIMITS]
end

local function change_lane(what, id, mark)
    local change = { what, lane_name(mark), mark[SEQ] .. id, mark[RUN_AT] }
    lane_changes[#lane_changes + 1] = change
end

-- Put a job into the place of its state; `leave` in parts/changing.lua is its counterpart.
local function enter(id, mark)
    local state, member = mark[STATE], mark[SEQ] .. id
    if state == PENDING and mark[EXTRAS] ~= 0 and has(mark, HAS_LIMITS) then
        change_lane('enter', id, mark)
    elseif state == PENDING then
        local key = ready_key(mark[QUEUE], mark[PRIORITY])
        local batch = batch_of('ZADD', key)
        if #batch == 2 then
            put('ZADD', levels_key(mark[QUEUE]), int(-mark[PRIORITY]), int(mark[PRIORITY]))
        end
        put('ZADD', key, int(mark[RUN_AT]), member)
        wake(mark[QUEUE])
    elseif state == PROCESSING then
        put('ZADD', LEASES, int(mark[UNTIL]), member)
    else
        put('ZADD', ended_key(state, mark[QUEUE]), NOW_TEXT, member)
    end
    count(state, mark[QUEUE], 1)
end

-- A waiting job that is due at another time from now on; its place is among the same ones.
local function shift(id, mark)
    if has(mark, HAS_LIMITS) then
        change_lane('leave', id, mark)
        change_lane('enter', id, mark)
        return
    end
    put('ZADD', ready_key(mark[QUEUE], mark[PRIORITY]), int(mark[RUN_AT]), mark[SEQ] .. id)
    wake(mark[QUEUE])
end
