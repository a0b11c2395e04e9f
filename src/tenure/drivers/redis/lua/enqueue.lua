-- Stores new jobs, group by group; of each group all or none.
-- In: how many groups; for each how many jobs; for each job nine: id, name, queue, priority, due
--     time or '', delay, content, size of the payload, blob.
-- Out: one number a job, over all groups: 1 for an id that is known with other content.
-- Why groups: calls that arrive together share one round trip, and are answered each by itself.
-- Reads everything first, then writes.
-- uses: store

local WIDTH = 9
local ids, groups, at = {}, {}, 3
for _ = 1, tonumber(ARGV[2]) do
    local last = at + WIDTH * tonumber(ARGV[at])
    groups[#groups + 1] = { at + 1, last }
    for i = at + 1, last, WIDTH do
        ids[#ids + 1] = ARGV[i]
    end
    at = last + 1
end

-- id -> the content it is known by. A damaged mark is some content, never the one given.
local known = {}
if #ids > 0 then
    local marks = read_marks(ids)
    for n, id in ipairs(ids) do
        if marks[n] ~= false then
            known[id] = marks[n] and marks[n][CONTENT] or ''
        end
    end
    if call('EXISTS', GONE) == 1 then
        for _, id in ipairs(ids) do
            local entry = not known[id] and call('HGET', GONE, id)
            if entry and tonumber(string.sub(entry, 1, 16)) > NOW then
                known[id] = string.sub(entry, 17)
            end
        end
    end
end

local answers, fresh = {}, {}
for _, group in ipairs(groups) do
    local refused, new = false, {}
    for i = group[1], group[2], WIDTH do
        local content = known[ARGV[i]]
        local duplicate = content ~= nil and content ~= ARGV[i + 6]
        answers[#answers + 1] = duplicate and 1 or 0
        refused = refused or duplicate
        if content == nil then
            new[#new + 1] = i
        end
    end
    if not refused then
        for _, i in ipairs(new) do
            known[ARGV[i]] = ARGV[i + 6]
            fresh[#fresh + 1] = i
        end
    end
end

if #fresh > 0 then
    local seq = call('INCRBY', base .. 'seq', #fresh) - #fresh
    for n, i in ipairs(fresh) do
        local id = ARGV[i]
        local due = tonumber(ARGV[i + 4]) or NOW + tonumber(ARGV[i + 5])
        local place = string.format('%016d', seq + n)
        local mark = {
            PENDING, 0, 0, tonumber(ARGV[i + 3]), due, NOW, NOW, 0, 0, 0, 0, 0, 0, 0,
            tonumber(ARGV[i + 7]), place, ARGV[i + 6], '', '', '', ARGV[i + 2], ARGV[i + 1]
        }
        put('HSET', JOBS, id, ARGV[i + 8])
        put_mark(id, mark)
        put('ZADD', ARRIVALS, place, id)
        enter(id, mark)
    end
    flush()
end
return answers
