-- remove(id, mark): deletes a job that is not processing, and remembers its id for a minute.
-- Out: of a completed job the bytes of payload and result, else 0.
-- Shared by delete, prune and purge. Puts writes; the caller flushes.

local ID_KNOWN = 60000000 -- microseconds; twice as long as a dispatch is repeated
local FORGOTTEN_AT_ONCE = 2000

-- Drops ids that need not be known any longer, and says how many. Each removal may drop two, so that
-- their number is bounded also where nobody prunes; prune drops all.
local function forget(most)
    local past = call('ZRANGEBYSCORE', GONE_AT, '-inf', NOW_TEXT, 'LIMIT', 0, most)
    if #past > 0 then
        call('ZREM', GONE_AT, unpack(past))
        call('HDEL', GONE, unpack(past))
    end
    return #past
end

local function remove(id, mark)
    local weight = 0
    leave(id, mark)
    if mark[STATE] == COMPLETED then
        weight = mark[SIZE] + (has(mark, HAS_RESULT) and call('HSTRLEN', RESULTS, id) or 0)
        weigh(mark[QUEUE], -weight)
    elseif mark[STATE] < COMPLETED and has(mark, HAS_UNIQUE) then
        free_key(id, mark) -- an end has done so already
    end
    put('HDEL', MARKS, id)
    put('HDEL', JOBS, id)
    drop_extra(ERRORS, HAS_ERROR, id, mark)
    drop_extra(RESULTS, HAS_RESULT, id, mark)
    drop_extra(PROGRESS, HAS_PROGRESS, id, mark)
    if has(mark, HAS_HISTORY) then
        put('DEL', KEYS[2], base .. 'history:' .. id)
    end
    put('ZREM', ARRIVALS, id)
    put('HSET', GONE, id, string.format('%016d', NOW + ID_KNOWN) .. mark[CONTENT])
    put('ZADD', GONE_AT, int(NOW + ID_KNOWN), id)
    return weight
end
