-- Deletes jobs that are not processing. In: ids.
-- Out: the answer for each. Each is written before the next is looked at: an id may come twice.
-- uses: store, marks, places, changing, limits, lanes, unique, removing

local answers = {}
for i = 2, #ARGV do
    local id, mark = ARGV[i], read_mark(ARGV[i])
    local answer = 'done'
    if not mark then
        answer = 'unknown'
    elseif mark[STATE] == PROCESSING then
        answer = 'running'
    else
        remove(id, mark)
        flush()
        forget(2)
    end
    answers[#answers + 1] = answer
end
return answers
