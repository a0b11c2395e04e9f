-- What every script shares: the names of keys, the marks of jobs, and the batched writing.
--
-- KEYS[1] is {namespace}:schema, KEYS[2] a key that never exists. All other keys begin as KEYS[1]
-- does, so they lie in its slot; scripts.py says why that is right and what KEYS[2] is for.
-- ARGV[1] is now in microseconds, or empty for the server's clock.
--
-- A job is one entry in `jobs` (its head and payload, never looked into here), one in `marks`
-- (all that changes, packed), one in `arrivals`, and one in the place of its state: `ready:..`
-- (pending), `leases` (processing) or `ended:..`. Numbers are whole microseconds or counts below
-- 2^53, which a double holds exactly; they become text by `int` only, since .. rounds to 14 digits
-- (and Redis takes three times as long to write a number as '%d' does).
--
-- Writes are gathered by `put` and made by `flush`, many members to a command. The first of them
-- may be refused (memory is full, this is a replica) and then nothing was written; Redis refuses
-- no later one, so a script is done wholly or not at all.

local call = redis.call
local base = string.sub(KEYS[1], 1, -7)
local MARKS, JOBS = base .. 'marks', base .. 'jobs'
local ERRORS, RESULTS, PROGRESS = base .. 'errors', base .. 'results', base .. 'progress'
local ARRIVALS, LEASES, TOTALS = base .. 'arrivals', base .. 'leases', base .. 'totals'
local BYTES = base .. 'bytes' -- of each queue: of payload and result of its completed jobs
local PAUSED, GONE, GONE_AT = base .. 'paused', base .. 'gone', base .. 'gone_at'

-- The fields of a mark. 0 and '' stand for none; SEQ is text of 16 digits, CONTENT of 16. The hold's
-- are UNTIL, LEASE, CLAIMED (when it was made), TOKEN and WORKER (who made it).
local STATE, CANCEL, EXTRAS, PRIORITY = 1, 2, 3, 4
local RUN_AT, CREATED, UPDATED, FINISHED, UNTIL, LEASE, CLAIMED = 5, 6, 7, 8, 9, 10, 11
local ATTEMPT, STALLS, SERIAL, SETTLED_SERIAL, SIZE = 12, 13, 14, 15, 16
local SEQ, CONTENT, TOKEN, SETTLED_TOKEN, SETTLED_OUTCOME = 17, 18, 19, 20, 21
local WORKER, QUEUE, NAME = 22, 23, 24
-- How it is packed, as records.py reads it; half the time of cmsgpack. Texts follow their lengths.
local LAYOUT = '>BBBbI8I8I8I8I8I8I8I4I4I4I4I4c16c16Bc0Bc0Bc0Hc0Hc0Hc0'
-- Behind it, only where EXTRAS has one of them: the unique key and the limits, as given to enqueue.
local TAIL, TAIL_AT, UNIQUE, LIMITS = '>Hc0Hc0', 25, 26, 27

local PENDING, BLOCKED, PROCESSING, COMPLETED, FAILED, CANCELLED = 0, 1, 2, 3, 4, 5
-- EXTRAS is the sum of those that the job has, so that the usual job costs no look-up for them.
local HAS_ERROR, HAS_RESULT, HAS_PROGRESS, HAS_UNIQUE, HAS_LIMITS, HAS_HISTORY = 1, 2, 4, 8, 16, 32

local CHUNK = 4000 -- arguments to one command: unpack has a limit of about 8000

local function server_time()
    local time = call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local NOW = tonumber(ARGV[1]) or server_time()

local function int(number)
    return string.format('%d', number)
end

local NOW_TEXT = int(NOW)

-- --- writing -------------------------------------------------------------------------------------

local batches, order = {}, {}
local left_ready = {} -- ready keys that lost a member: their level may be empty now
local counted = {} -- queue -> state -> change of its total
local weighed = {} -- queue -> change of the bytes of its completed jobs
local woken = {}

-- The arguments that are gathered for one command on one key; append to it, then flush.
local function batch_of(command, key)
    local of_command = batches[command]
    if not of_command then
        of_command = {}
        batches[command] = of_command
    end
    local batch = of_command[key]
    if not batch then
        batch = { command, key }
        of_command[key] = batch
        order[#order + 1] = batch
    end
    return batch
end

local function put(command, key, first, second)
    local batch = batch_of(command, key)
    local n = #batch
    batch[n + 1], batch[n + 2] = first, second
end

local function count(state, queue, change)
    local states = counted[queue]
    if not states then
        states = {}
        counted[queue] = states
    end
    states[state] = (states[state] or 0) + change
end

local function weigh(queue, change)
    weighed[queue] = (weighed[queue] or 0) + change
end

local function wake(queue)
    woken[queue] = true
end

local function write_batches()
    for _, batch in ipairs(order) do -- one to which nothing was added is skipped
        for from = 3, #batch, CHUNK do
            call(batch[1], batch[2], unpack(batch, from, math.min(from + CHUNK - 1, #batch)))
        end
    end
    batches, order = {}, {}
end

local function write_levels()
    for key, level in pairs(left_ready) do
        if call('EXISTS', key) == 0 then
            call('ZREM', base .. 'levels:' .. level[1], int(level[2]))
        end
    end
    left_ready = {}
end

local function write_totals()
    for queue, change in pairs(weighed) do
        if change ~= 0 and call('HINCRBY', BYTES, queue, int(change)) <= 0 then
            call('HDEL', BYTES, queue)
        end
    end
    weighed = {}
    for queue, states in pairs(counted) do
        for state, change in pairs(states) do
            local field = int(state) .. queue
            if change ~= 0 and call('HINCRBY', TOTALS, field, int(change)) == 0 then
                call('HDEL', TOTALS, field) -- a queue that was used once leaves nothing
                if state == COMPLETED then
                    call('HDEL', BYTES, queue) -- nor what a damaged job left there
                end
            end
        end
    end
    counted = {}
end

-- A stream of one entry for each queue tells all that wait, wherever they are: none can take it
-- away from another, and who comes late still sees it. Its expiry collects garbage only, and its
-- ids grow with time, so a new stream goes on where the old one ended.
local function write_hints()
    for queue in pairs(woken) do
        local key = base .. 'wake:' .. queue
        call('XADD', key, 'MAXLEN', '1', '*', 'w', '')
        call('EXPIRE', key, '3600')
    end
    woken = {}
end

local lanes -- parts/lanes.lua has it, which every script that moves jobs uses
local lane_changes = {} -- {what, lane, member, due}, made in this order

local function write_lanes()
    if #lane_changes > 0 then
        lanes().run(lane_changes)
        lane_changes = {}
    end
end

local function flush()
    write_batches()
    write_lanes()
    write_levels()
    write_totals()
    write_hints()
end

-- --- marks ---------------------------------------------------------------------------------------

local function listed(ok, ...)
    return ok and { ... } or nil
end

local function has_tail(mark)
    return mark[EXTRAS] % 32 >= 8
end

local function unpacked(packed)
    local mark = listed(pcall(struct.unpack, LAYOUT, packed))
    if mark and mark[EXTRAS] ~= 0 and has_tail(mark) then
        local tail = listed(pcall(struct.unpack, TAIL, packed, mark[TAIL_AT]))
        if not tail then
            return nil
        end
        mark[UNIQUE], mark[LIMITS] = tail[1], tail[2]
    end
    return mark
end

local function pack(m)
    local packed = struct.pack(
        LAYOUT, m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9], m[10], m[11], m[12], m[13],
        m[14], m[15], m[16], m[SEQ], m[CONTENT], #m[TOKEN], m[TOKEN], #m[SETTLED_TOKEN],
        m[SETTLED_TOKEN], #m[SETTLED_OUTCOME], m[SETTLED_OUTCOME], #m[WORKER], m[WORKER],
        #m[QUEUE], m[QUEUE], #m[NAME], m[NAME]
    )
    if m[EXTRAS] ~= 0 and has_tail(m) then
        packed = packed .. struct.pack(TAIL, #m[UNIQUE], m[UNIQUE], #m[LIMITS], m[LIMITS])
    end
    return packed
end

-- The marks of ids, each beside its own: false where there is none, nil where it is damaged.
local function read_marks(ids)
    local marks = {}
    for from = 1, #ids, CHUNK do
        local found = call('HMGET', MARKS, unpack(ids, from, math.min(from + CHUNK - 1, #ids)))
        for i, packed in ipairs(found) do
            marks[from + i - 1] = packed and unpacked(packed)
        end
    end
    return marks
end

local function read_mark(id)
    local packed = call('HGET', MARKS, id)
    return packed and unpacked(packed)
end

local function put_mark(id, mark)
    mark[UPDATED] = NOW
    local packed = pack(mark)
    put('HSET', MARKS, id, packed)
    return packed
end

local function has(mark, extra)
    return math.floor(mark[EXTRAS] / extra) % 2 == 1
end

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

-- I3: whether the hold is the current one, expired or not.
local function held_by(mark, serial, token)
    return mark[STATE] == PROCESSING and mark[SERIAL] == serial and mark[TOKEN] == token
end

-- --- places --------------------------------------------------------------------------------------

-- Members sort by arrival where their scores are equal, and carry the id behind the number.
local function id_in(member)
    return string.sub(member, 17)
end

local function ids_in(members)
    local ids = {}
    for i, member in ipairs(members) do
        ids[i] = string.sub(member, 17)
    end
    return ids
end

-- `kind` and `number` of a queue name a place; each name is made once.
local names = { ready = {}, ended = {} }

local function place_of(kind, number, queue)
    local of_queue = names[kind][queue]
    if not of_queue then
        of_queue = {}
        names[kind][queue] = of_queue
    end
    local name = of_queue[number]
    if not name then
        name = base .. kind .. ':' .. int(number) .. ':' .. queue
        of_queue[number] = name
    end
    return name
end

local function ready_key(queue, priority)
    return place_of('ready', priority, queue)
end

local function levels_key(queue)
    return base .. 'levels:' .. queue
end

local function ended_key(state, queue)
    return place_of('ended', state, queue)
end

-- Which jobs are held back by a limit together (see parts/lanes.lua).
local function lane_name(mark)
    local queue = mark[QUEUE]
    return struct.pack('>bHc0', mark[PRIORITY], #queue, queue) .. mark[LIMITS]
end

local function change_lane(what, id, mark)
    local change = { what, lane_name(mark), mark[SEQ] .. id, mark[RUN_AT] }
    lane_changes[#lane_changes + 1] = change
end

-- Take a job out of the place of its state. `enter` is its counterpart; both keep the totals.
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

local free_key -- parts/unique.lua has it, which every script that may end a job uses

-- A change of state but for a claim ends the hold, and an end the hold on the unique key (I8).
local function become(id, mark, state)
    leave(id, mark)
    if state >= COMPLETED and mark[EXTRAS] ~= 0 and has(mark, HAS_UNIQUE) then
        free_key(id, mark)
    end
    mark[STATE] = state
    mark[TOKEN], mark[WORKER] = '', ''
    mark[UNTIL], mark[LEASE], mark[CLAIMED] = 0, 0, 0
    mark[FINISHED] = state >= COMPLETED and NOW or 0
    enter(id, mark)
end
