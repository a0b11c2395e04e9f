-- Changes queue, due time or priority of waiting jobs.
-- In: id, queue, due time, priority, serial for each; '' leaves it as it is.
-- Out: the answer for each. Each is written before the next is looked at: an id may come twice.
-- uses: store, marks, places, changing, limits, lanes

local answers = {}
for i = 2, #ARGV, 5 do
    local id, mark = ARGV[i], read_mark(ARGV[i])
    local answer = 'done'
    if not mark then
        answer = 'unknown'
    elseif ARGV[i + 4] ~= '' and tonumber(ARGV[i + 4]) ~= mark[SERIAL] then
        answer = 'live'
    elseif mark[STATE] == PROCESSING then
        answer = 'running'
    elseif mark[STATE] >= COMPLETED then
        answer = 'finished'
    else
        leave(id, mark)
        flush() -- it may come back to the very same place
        mark[QUEUE] = ARGV[i + 1] ~= '' and ARGV[i + 1] or mark[QUEUE]
        mark[RUN_AT] = tonumber(ARGV[i + 2]) or mark[RUN_AT]
        mark[PRIORITY] = tonumber(ARGV[i + 3]) or mark[PRIORITY]
        enter(id, mark)
        put_mark(id, mark)
        flush()
    end
    answers[#answers + 1] = answer
end
return answers
