-- The earliest due time after now of the given queues that are not paused, or instant at which the
-- rate of a key lets a job through that waits for it. In: queues. Out: a time, or nothing.
-- Two seeks for each priority in use, and a bounded number for keys that are full by their rate.
-- uses: store, limits, lanes

local earliest
local unpaused, some_due = {}, false

local function consider(due)
    if due and (not earliest or due < earliest) then
        earliest = due
    end
end

-- Whether a job of these queues may wait for the key: one that is parked on it, or that is due and
-- that no claim has looked at since.
local function is_waited_for(key)
    for _, queue in ipairs(some_due and {} or unpaused) do
        local beginning = struct.pack('>Hc0', #queue, queue)
        local entry = call(
            'ZRANGEBYLEX', PARKED .. key, '[' .. beginning, '(' .. beginning .. '\255',
            'LIMIT', 0, 1
        )
        if #entry > 0 then
            return true
        end
    end
    return some_due
end

for i = 2, #ARGV do
    local queue = ARGV[i]
    if call('SISMEMBER', PAUSED, queue) == 0 then
        for _, priority in ipairs(call('ZRANGE', levels_key(queue), 0, -1)) do
            local key = ready_key(queue, tonumber(priority))
            local found =
                call('ZRANGEBYSCORE', key, '(' .. NOW_TEXT, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
            consider(tonumber(found[2]))
            local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
            some_due = some_due or (first[2] and tonumber(first[2]) <= NOW)
        end
        unpaused[#unpaused + 1] = queue
        if some_due then -- the lane of what could be claimed at once may have others behind
            local kept = KEPT .. queue
            consider(tonumber(call(
                'ZRANGEBYSCORE', kept, '(' .. NOW_TEXT, '+inf', 'WITHSCORES', 'LIMIT', 0, 1
            )[2]))
        end
    end
end
local rates = call('ZRANGEBYSCORE', FREEING, '(' .. NOW_TEXT, '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
for i = 1, #rates, 2 do
    local due = tonumber(rates[i + 1])
    if earliest and due >= earliest then
        break
    end
    if i == 199 or is_waited_for(string.sub(rates[i], 2)) then -- too many to look at: too early
        consider(due)
    end
end
return earliest and int(earliest)
