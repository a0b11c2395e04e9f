-- How many jobs each queue has in each state. In: nothing.
-- Out: paused queues; then, flat, state and queue in one text with their number; then, flat, queue
-- with the number of its waiting jobs that are due. From the kept totals, and two seeks for each
-- priority in use: never a scan.
-- uses: store

local totals, due = call('HGETALL', TOTALS), {}
for i = 1, #totals, 2 do
    if string.sub(totals[i], 1, 1) == int(PENDING) then
        local queue = string.sub(totals[i], 2)
        local sum = call('ZCOUNT', base .. 'kept:' .. queue, '-inf', NOW_TEXT) -- behind a limit
        for _, priority in ipairs(call('ZRANGE', levels_key(queue), 0, -1)) do
            sum = sum + call('ZCOUNT', ready_key(queue, tonumber(priority)), '-inf', NOW_TEXT)
        end
        due[#due + 1] = queue
        due[#due + 1] = sum
    end
end
return { call('SMEMBERS', PAUSED), totals, due }
