-- store_groups(groups): stores new jobs, group by group; of each group all or none.
--
-- A group is {first, last}: where in ARGV its jobs are, ten arguments each: id, name, queue,
-- priority, due time or '', delay, content, size of the payload, blob, and the mark's tail or ''.
-- Out: the answer for each, over all groups: 0 for stored or known, 1 for an id that is known with
-- other content, or the id of the job that holds its unique key.
-- Shared by enqueue and fire. Reads everything first, then puts its writes; the caller flushes.

local WIDTH = 10

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
    return known
end

-- A new job without its place, which it gets when it is written.
local function new_mark(i)
    local due = tonumber(ARGV[i + 4]) or NOW + tonumber(ARGV[i + 5])
    local mark = {
        PENDING, 0, 0, tonumber(ARGV[i + 3]), due, NOW, NOW, 0, 0, 0, 0, 0, 0, 0, 0,
        tonumber(ARGV[i + 7]), false, ARGV[i + 6], '', '', '', '', ARGV[i + 2], ARGV[i + 1]
    }
    if ARGV[i + 9] ~= '' then
        local unique, limits = struct.unpack(TAIL, ARGV[i + 9])
        mark[EXTRAS] = (unique ~= '' and HAS_UNIQUE or 0) + (limits ~= '' and HAS_LIMITS or 0)
        mark[UNIQUE], mark[LIMITS] = unique, limits
    end
    return mark
end

-- The holders of unique keys as they are after what this script has decided so far.
local holders = {} -- key -> {id, mark}, or false
local blobs = {} -- id -> what `jobs` gets
local changed = {} -- those that were stored before

local function holder_now(key)
    if holders[key] == nil then
        local found = holder_of(key)
        if found and changed[found.id] then
            found.mark = changed[found.id]
        end
        holders[key] = found or false
    end
    return holders[key]
end

-- What a refused dispatch does to a waiting holder of the same name (see UniqueKey).
local function change_holder(holder, unique, mark, blob)
    local held = holder.mark
    local replaces = unique.mode == REPLACE
    if not held or held[STATE] > BLOCKED or held[NAME] ~= mark[NAME]
        or not (replaces or unique.mode == DEBOUNCE) then
        return
    end
    local due = mark[RUN_AT]
    if unique.max_wait then
        due = math.min(due, held[CREATED] + math.floor(unique.max_wait + 0.5))
    end
    held[RUN_AT] = replaces and due or math.max(held[RUN_AT], due)
    if replaces then
        local old = blobs[holder.id] or call('HGET', JOBS, holder.id) or '\n'
        local head = string.sub(old, 1, (string.find(old, '\n', 1, true) or 1) - 1)
        blobs[holder.id] = head .. string.sub(blob, (string.find(blob, '\n', 1, true)))
        held[SIZE] = mark[SIZE]
    end
    if held[SEQ] then -- else it is new itself
        changed[holder.id] = held
    end
end

local function write(fresh)
    local seq = #fresh > 0 and call('INCRBY', base .. 'seq', #fresh) - #fresh
    for n, job in ipairs(fresh) do
        local id, mark = job.id, job.mark
        mark[SEQ] = string.format('%016d', seq + n)
        put('HSET', JOBS, id, blobs[id])
        put_mark(id, mark)
        put('ZADD', ARRIVALS, mark[SEQ], id)
        enter(id, mark)
    end
    for id, mark in pairs(changed) do
        if blobs[id] then
            put('HSET', JOBS, id, blobs[id])
        end
        put_mark(id, mark)
        shift(id, mark)
    end
end

local function store_groups(groups)
    local known = known_ids(groups)
    local answers, fresh = {}, {}

    -- The holder of the job's key, or nil where nobody has it.
    local function refused_by(mark, unique)
        local holder = has(mark, HAS_UNIQUE) and holder_now(unique.key)
        return holder or nil
    end

    local function add(i, number)
        local id, mark = ARGV[i], new_mark(i)
        local unique = has(mark, HAS_UNIQUE) and unique_of(mark[UNIQUE])
        local holder = refused_by(mark, unique)
        if holder then
            change_holder(holder, unique, mark, ARGV[i + 8])
            answers[number] = holder.id
            return
        end
        known[id], blobs[id] = ARGV[i + 6], ARGV[i + 8]
        fresh[#fresh + 1] = { id = id, mark = mark }
        if unique then
            hold_key(id, unique)
            holders[unique.key] = { id = id, mark = mark }
        end
    end

    for _, group in ipairs(groups) do
        local refused, new = false, {}
        for i = group[1], group[2], WIDTH do
            local content = known[ARGV[i]]
            local duplicate = content ~= nil and content ~= ARGV[i + 6]
            answers[#answers + 1] = duplicate and 1 or 0
            refused = refused or duplicate
            if content == nil then
                new[#new + 1] = { i, #answers }
            end
        end
        for _, entry in ipairs(new) do
            local i, number = entry[1], entry[2]
            if not refused then
                add(i, number)
            elseif ARGV[i + 9] ~= '' then
                local mark = new_mark(i)
                local unique = has(mark, HAS_UNIQUE) and unique_of(mark[UNIQUE])
                local holder = refused_by(mark, unique)
                answers[number] = holder and holder.id or 0
            end
        end
    end
    write(fresh)
    return answers
end
