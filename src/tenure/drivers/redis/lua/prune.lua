-- Deletes finished jobs beyond their retention, longest ended first; forgets old ids, keys, workers.
-- In: how many at most, then the age to keep of completed, failed and cancelled ones ('' for all),
--     and how many completed ones of a queue to keep ('' for all).
-- Out: how many, and 1 if there is more to forget, else 0. Looks only at what it deletes: each
-- state of a queue is sorted by its end.
-- uses: store, limits, lanes, freeing, unique, removing, presence

local FRESH = 60000000 -- microseconds; a job that ended more recently stays
local left = tonumber(ARGV[2])
local ages = { [COMPLETED] = ARGV[3], [FAILED] = ARGV[4], [CANCELLED] = ARGV[5] }
local keep = tonumber(ARGV[6])

-- Delete up to `most` jobs that ended before the limit of the score; how many.
local function delete(key, highest, most)
    most = math.min(most, left)
    if most <= 0 then
        return 0
    end
    local members = call('ZRANGEBYSCORE', key, '-inf', highest, 'LIMIT', 0, most)
    local ids = ids_in(members)
    local marks = read_marks(ids)
    for n, id in ipairs(ids) do
        local mark = marks[n]
        if mark and key == ended_key(mark[STATE], mark[QUEUE]) then
            remove(id, mark)
        else
            put('ZREM', key, members[n]) -- damaged: it would stand at the head for ever
        end
    end
    left = left - #members
    return #members
end

local forgotten = forget(FORGOTTEN_AT_ONCE)
local keys_looked_at = forget_keys(FORGOTTEN_AT_ONCE)
forget_workers()
free_in_time() -- also where nobody claims any more
local totals, deleted = call('HGETALL', TOTALS), 0
for i = 1, #totals, 2 do
    local state, queue = tonumber(string.sub(totals[i], 1, 1)), string.sub(totals[i], 2)
    local age = ages[state]
    if age then
        local key, gone = ended_key(state, queue), 0
        if age ~= '' then
            local old, settled = NOW - tonumber(age) - 1, NOW - FRESH
            gone = delete(key, int(math.min(old, settled)), left)
        end
        if state == COMPLETED and keep then
            flush() -- what is deleted already must not be found again
            gone = gone + delete(key, int(NOW - FRESH), tonumber(totals[i + 1]) - gone - keep)
        end
        deleted = deleted + gone
    end
end
flush()
local more = math.max(forgotten, keys_looked_at) == FORGOTTEN_AT_ONCE
return { deleted, more and 1 or 0 }
