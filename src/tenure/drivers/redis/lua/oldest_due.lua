-- For each of the given queues, since when the first of its due jobs has been due.
-- In: queues. Out: for each a time, or an empty string.
-- One look for each priority in use.
-- uses: store, limits, lanes

local found = {}
for i = 2, #ARGV do
    local queue, earliest = ARGV[i], nil
    local keys = { KEPT .. queue }
    for _, priority in ipairs(call('ZRANGE', levels_key(queue), 0, -1)) do
        keys[#keys + 1] = ready_key(queue, tonumber(priority))
    end
    for _, key in ipairs(keys) do
        local due = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
        if due and due <= NOW and (not earliest or due < earliest) then
            earliest = due
        end
    end
    found[#found + 1] = earliest and int(earliest) or ''
end
return found
