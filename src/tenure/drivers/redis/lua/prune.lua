-- Deletes finished jobs beyond their retention, longest ended first; forgets old ids, keys, workers.
-- In: how many at most, then the age to keep of completed, failed and cancelled ones ('' for all),
--     and how many completed ones of a queue to keep, and how many bytes of them ('' for all).
-- Out: how many, and 1 if there is more to forget, else 0. Looks only at what it deletes, or little
-- more: each state of a queue is sorted by its end, and its number and bytes are kept.
-- uses: store, marks, places, changing, limits, lanes, freeing, unique, removing, presence

local FRESH = 60000000 -- microseconds; a job that ended more recently stays
local left = tonumber(ARGV[2])
local ages = { [COMPLETED] = ARGV[3], [FAILED] = ARGV[4], [CANCELLED] = ARGV[5] }
local keep, keep_bytes = tonumber(ARGV[6]), tonumber(ARGV[7])
local AT_ONCE = 50 -- jobs that are looked at before it is known whether they are to go

-- Delete up to `most` jobs that ended before the limit of the score, and no more of them than it
-- takes to be rid of so many bytes; how many.
local function delete(key, highest, most, bytes)
    most = math.min(most, left)
    if most <= 0 then
        return 0
    end
    local members = call('ZRANGEBYSCORE', key, '-inf', highest, 'LIMIT', 0, most)
    local ids = ids_in(members)
    local marks, deleted = read_marks(ids), 0
    for n, id in ipairs(ids) do
        if bytes <= 0 then
            break
        end
        local mark = marks[n]
        if mark and key == ended_key(mark[STATE], mark[QUEUE]) then
            bytes = bytes - remove(id, mark)
        else
            put('ZREM', key, members[n]) -- damaged: it would stand at the head for ever
        end
        deleted = n
    end
    left = left - deleted
    return deleted
end

-- Delete completed jobs of a queue until it keeps no more bytes than it may; how many.
local function lighten(queue)
    local key, gone, deleted = ended_key(COMPLETED, queue), 0, AT_ONCE
    while deleted == AT_ONCE do
        flush()
        local surplus = (tonumber(call('HGET', BYTES, queue)) or 0) - keep_bytes
        deleted = surplus > 0 and delete(key, int(NOW - FRESH), AT_ONCE, surplus) or 0
        gone = gone + deleted
    end
    return gone
end

local forgotten = forget(FORGOTTEN_AT_ONCE)
local keys_looked_at = keys().forget(FORGOTTEN_AT_ONCE)
forget_workers()
freeing().free_in_time() -- also where nobody claims any more
local totals, deleted = call('HGETALL', TOTALS), 0
for i = 1, #totals, 2 do
    local state, queue = tonumber(string.sub(totals[i], 1, 1)), string.sub(totals[i], 2)
    local age = ages[state]
    if age then
        local key, gone = ended_key(state, queue), 0
        if age ~= '' then
            local old, settled = NOW - tonumber(age) - 1, NOW - FRESH
            gone = delete(key, int(math.min(old, settled)), left, math.huge)
        end
        if state == COMPLETED and keep then
            flush() -- what is deleted already must not be found again
            local surplus = tonumber(totals[i + 1]) - gone - keep
            gone = gone + delete(key, int(NOW - FRESH), surplus, math.huge)
        end
        if state == COMPLETED and keep_bytes then
            gone = gone + lighten(queue)
        end
        deleted = deleted + gone
    end
end
flush()
local more = math.max(forgotten, keys_looked_at) == FORGOTTEN_AT_ONCE
return { deleted, more and 1 or 0 }
