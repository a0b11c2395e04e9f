-- Makes failed and cancelled jobs due now, with a fresh budget. In: id, serial or '' for each.
-- Out: the answer for each. Each is written before the next is looked at: an id may come twice.
-- uses: store, marks, places, changing, limits, lanes, unique

-- Whether the job has no unique key, or holds it from now on. A throttle is not asked for its key.
local function takes_key_anew(id, mark)
    local unique = has(mark, HAS_UNIQUE) and keys().of(mark[UNIQUE])
    if not unique or unique.mode == THROTTLE then
        return true
    elseif keys().holder(unique.key) then
        return false
    end
    keys().hold(id, unique)
    return true
end

local answers = {}
for i = 2, #ARGV, 2 do
    local id, mark = ARGV[i], read_mark(ARGV[i])
    local answer = 'done'
    if not mark then
        answer = 'unknown'
    elseif ARGV[i + 1] ~= '' and tonumber(ARGV[i + 1]) ~= mark[SERIAL] then
        answer = 'done' -- someone has retried it since
    elseif mark[STATE] == PROCESSING then
        answer = 'running'
    elseif mark[STATE] < COMPLETED then
        answer = 'live'
    elseif mark[STATE] == COMPLETED then
        answer = 'finished'
    elseif not takes_key_anew(id, mark) then
        answer = 'held'
    else
        mark[ATTEMPT], mark[STALLS], mark[RUN_AT], mark[CANCEL] = 0, 0, NOW, 0
        become(id, mark, PENDING)
        put_mark(id, mark)
        flush()
    end
    answers[#answers + 1] = answer
end
return answers
