-- store_groups(groups): stores new jobs, group by group; of each group all or none.
--
-- A group is {first, last}: where in ARGV its jobs are, as parts/given.lua has them.
-- Out: the answer for each, over all groups: 0 for stored or known, 1 for an id that is known with
-- other content, or the id of the job that holds its unique key.
-- Shared by enqueue and fire. Reads everything first, then puts its writes; the caller flushes.

-- id -> the content it is known by. A damaged mark is some content, never the one given.
local function known_ids(groups)
    local ids, known = {}, {}
    for _, group in ipairs(groups) do
        for i = group[1], group[2], WIDTH do
            ids[#ids + 1] = ARGV[i]
        end
    end
    if #ids == 0 then
        return known
    end
    for n, packed in ipairs(read_all(MARKS, ids)) do
        local mark = packed and unpacked(packed)
        if packed then
            known[ids[n]] = mark and mark[CONTENT] or ''
        end
    end
    if call('EXISTS', GONE) == 1 then
        for n, entry in ipairs(read_all(GONE, ids)) do
            if entry and not known[ids[n]] and tonumber(string.sub(entry, 1, 16)) > NOW then
                known[ids[n]] = string.sub(entry, 17)
            end
        end
    end
    return known
end

-- Where jobs of a kind go, without unique key and limits; nil for others.
local function place_of_kind(kind)
    local priority, queue = plain_kind(kind)
    if queue then
        put('ZADD', levels_key(queue), int(-priority), int(priority))
        wake(queue)
        return { ready = batch_of('ZADD', ready_key(queue, priority)), queue = queue, stored = 0 }
    end
end

-- `fresh` are positions in ARGV. All but the place, the due time, the size and the content is alike
-- for the usual jobs of a kind.
local function write(fresh, keyed)
    local seq = #fresh > 0 and call('INCRBY', base .. 'seq', #fresh) - #fresh
    local head = packed_head(PENDING, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '')
    local jobs, marks = batch_of('HSET', JOBS), batch_of('HSET', MARKS)
    local arrivals, places = batch_of('ZADD', ARRIVALS), {}
    for n, i in ipairs(fresh) do
        local id, when, kind = ARGV[i], ARGV[i + 1], ARGV[i + 3]
        local mark, number = keyed and keyed.marks[i], string.format('%016d', seq + n)
        add(jobs, id, keyed and keyed.blobs[id] or ARGV[i + 4])
        add(arrivals, number, id)
        if mark then
            mark[SEQ] = number
            put_mark(id, mark)
            enter(id, mark)
        else
            local place = places[kind] or place_of_kind(kind)
            local due, due_text = NOW_PACKED, NOW_TEXT
            if when ~= '' then
                local instant = due_at(when)
                due, due_text = struct.pack('>I8', instant), int(instant)
            end
            add(marks, id, NOW_PACKED .. due .. NOW_PACKED .. number .. ARGV[i + 2] .. head .. kind)
            add(place.ready, due_text, number .. id)
            place.stored = place.stored + 1
            places[kind] = place
        end
    end
    for _, place in pairs(places) do
        count(PENDING, place.queue, place.stored)
    end
    if keyed then
        keyed.write_changed()
    end
end

local function store_groups(groups)
    local known = known_ids(groups)
    local answers, fresh, keyed, plain = {}, {}, nil, {}
    for _, group in ipairs(groups) do
        local refused, new, before = false, {}, #answers
        for i = group[1], group[2], WIDTH do
            local content = known[ARGV[i]]
            local duplicate = content ~= nil and content ~= content_of(i)
            answers[#answers + 1] = duplicate and 1 or 0
            refused = refused or duplicate
            if content == nil then
                new[#new + 1] = i
            end
        end
        for _, i in ipairs(new) do
            local kind, holder = ARGV[i + 3], nil
            if plain[kind] == nil then
                plain[kind] = plain_kind(kind) ~= nil
            end
            if not plain[kind] then
                keyed = keyed or make_keyed()
                holder = keyed.refused_by(i, refused)
            end
            if holder then
                answers[before + 1 + (i - group[1]) / WIDTH] = holder
            elseif not refused then
                known[ARGV[i]] = content_of(i)
                fresh[#fresh + 1] = i
            end
        end
    end
    write(fresh, keyed)
    return answers
end
