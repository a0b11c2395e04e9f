-- What every script shares: the names of keys, the time, the batched writing, the places of jobs.
--
-- KEYS[1] is {namespace}:schema, KEYS[2] a key that never exists. All other keys begin as KEYS[1]
-- does, so they lie in its slot; scripts.py says why that is right and what KEYS[2] is for.
-- ARGV[1] is now in microseconds, or empty for the server's clock.
--
-- A job is one entry in `jobs` (its head and payload, never looked into here), one in `marks`
-- (parts/marks.lua), one in `arrivals`, and one in the place of its state: `ready:..` (pending),
-- `leases` (processing) or `ended:..`. Numbers are whole microseconds or counts below
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

local PENDING, BLOCKED, PROCESSING, COMPLETED, FAILED, CANCELLED = 0, 1, 2, 3, 4, 5

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

local function listed(ok, ...)
    return ok and { ... } or nil
end

-- What a hash has of each of these fields: false where there is none.
local function read_all(key, fields)
    if #fields <= CHUNK then
        return #fields > 0 and call('HMGET', key, unpack(fields)) or {}
    end
    local values = {}
    for from = 1, #fields, CHUNK do
        local found = call('HMGET', key, unpack(fields, from, math.min(from + CHUNK - 1, #fields)))
        for i = 1, #found do
            values[from + i - 1] = found[i]
        end
    end
    return values
end

-- --- writing -------------------------------------------------------------------------------------

local batches, order = {}, {}
local left_ready = {} -- ready keys that lost a member: their level may be empty now
local counted = {} -- queue -> state -> change of its total
local weighed = {} -- queue -> change of the bytes of its completed jobs
local woken = {}

-- The arguments that are gathered for one command on one key; append to it, then flush.
local function batch_of(command, key)
    local name = command .. key
    local batch = batches[name]
    if not batch then
        batch = { command, key, nil, nil } -- with room for two
        batches[name] = batch
        order[#order + 1] = batch
    end
    return batch
end

local function add(batch, first, second)
    local n = #batch
    batch[n + 1], batch[n + 2] = first, second
end

local function put(command, key, first, second)
    add(batch_of(command, key), first, second)
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

local lanes, keys -- parts/lanes.lua and parts/unique.lua have them
local lanes_made -- nothing where no job with limits was met
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

-- I12: members that name no job, as no script makes them, are taken out of their place for good.
-- Whether there were any: then what is left is fewer than was asked for.
local function drop_nameless(key, members, ids)
    local found = false
    for i = #ids, 1, -1 do
        if ids[i] == '' then
            call('ZREM', key, members[i])
            found = true
        end
    end
    return found
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
