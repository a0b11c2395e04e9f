-- Stores whole jobs of another store, all or none.
-- In: for each job id, content, the mark before its seq and after it (parts/marks.lua), blob, then
--     error, result and progress, each '' for none (EXTRAS say which there are), until when it holds its
--     unique key ('' for not at all, 0 for until it ends), how many attempts its history has, and these as
--     parts/history.lua packs them.
-- Out: for each 0 stored, 1 known with the same content, 2 with other content, or the id of the job that
--      holds its key. With a 2 or an id nothing was changed.
-- uses: store, marks, places, limits, lanes, unique

local WIDTH = 10
local known, taken, answers, fresh, refused = {}, {}, {}, {}, false

-- Beside its content '' stands for a mark that is damaged: never the one given.
local function known_content(id)
    local packed = call('HGET', MARKS, id)
    if packed then
        local mark = unpacked(packed)
        return mark and mark[CONTENT] or ''
    end
    local entry = call('HGET', GONE, id)
    if entry and tonumber(string.sub(entry, 1, 16)) > NOW then
        return string.sub(entry, 17)
    end
end

-- Where a job takes its unique key: the key, and when that ends; nothing for others.
local function key_taken(i, mark)
    local ends = tonumber(ARGV[i + 8])
    if ends and (ends == 0 or ends > NOW) and has(mark, HAS_UNIQUE) then
        return keys().of(mark[UNIQUE]), ends
    end
end

local function judge(i)
    local id = ARGV[i]
    local content = known_content(id)
    if content then
        return content == ARGV[i + 1] and 1 or 2
    end
    local mark = unpacked(ARGV[i + 2] .. string.rep('0', 16) .. ARGV[i + 3])
    local unique = key_taken(i, mark)
    local holder = unique and (keys().holder(unique.key) or taken[unique.key])
    if holder then
        return holder.id
    elseif unique then
        taken[unique.key] = { id = id }
    end
    fresh[#fresh + 1] = { i, mark }
    return 0
end

local function store(i, mark, seq)
    local id, number = ARGV[i], string.format('%016d', seq)
    mark[SEQ] = number
    put('HSET', JOBS, id, ARGV[i + 4])
    put('HSET', MARKS, id, ARGV[i + 2] .. number .. ARGV[i + 3])
    put('ZADD', ARRIVALS, number, id)
    for n, extra in ipairs({ { HAS_ERROR, ERRORS }, { HAS_RESULT, RESULTS }, { HAS_PROGRESS, PROGRESS } }) do
        if has(mark, extra[1]) then
            put('HSET', extra[2], id, ARGV[i + 4 + n])
        end
    end
    for n = 1, tonumber(ARGV[i + 9]) do
        batch_of('RPUSH', base .. 'history:' .. id)[n + 2] = ARGV[i + 9 + n]
    end
    local unique, ends = key_taken(i, mark)
    if unique then
        keys().hold_until(id, unique, ends)
    end
    if mark[STATE] < COMPLETED then
        enter(id, mark)
    else
        put('ZADD', ended_key(mark[STATE], mark[QUEUE]), int(mark[FINISHED]), number .. id)
        count(mark[STATE], mark[QUEUE], 1)
    end
    if mark[STATE] == COMPLETED then
        weigh(mark[QUEUE], mark[SIZE] + #ARGV[i + 6])
    end
end

local i = 2
while i <= #ARGV do
    local answer = judge(i)
    refused = refused or answer ~= 0 and answer ~= 1
    answers[#answers + 1] = answer
    i = i + WIDTH + tonumber(ARGV[i + 9])
end
if not refused and #fresh > 0 then
    local seq = call('INCRBY', base .. 'seq', #fresh) - #fresh
    for n, job in ipairs(fresh) do
        store(job[1], job[2], seq + n)
    end
    flush()
end
return answers
