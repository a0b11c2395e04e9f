-- The earliest due time after now of the given queues that are not paused. In: queues.
-- Out: a time, or nothing. One seek for each priority in use.
-- uses: store

local earliest
for i = 2, #ARGV do
    local queue = ARGV[i]
    if call('SISMEMBER', PAUSED, queue) == 0 then
        for _, priority in ipairs(call('ZRANGE', levels_key(queue), 0, -1)) do
            local key = ready_key(queue, tonumber(priority))
            local found =
                call('ZRANGEBYSCORE', key, '(' .. NOW_TEXT, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
            local due = tonumber(found[2])
            if due and (not earliest or due < earliest) then
                earliest = due
            end
        end
    end
end
return earliest and int(earliest)
