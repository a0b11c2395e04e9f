-- Cancels waiting jobs and stores the wish for processing ones. In: ids.
-- Out: the answer for each. Each is written before the next is looked at: an id may come twice.
-- uses: store, marks, places, changing, limits, lanes, unique

local answers = {}
for i = 2, #ARGV do
    local id, mark = ARGV[i], read_mark(ARGV[i])
    local answer = 'done'
    if not mark then
        answer = 'unknown'
    elseif mark[STATE] >= COMPLETED then
        answer = 'finished'
    elseif mark[STATE] == PROCESSING then
        answer = 'requested'
        mark[CANCEL] = 1
        put_mark(id, mark)
    else
        mark[CANCEL] = 0 -- the wish of an earlier attempt is fulfilled
        become(id, mark, CANCELLED)
        put_mark(id, mark)
    end
    flush()
    answers[#answers + 1] = answer
end
return answers
