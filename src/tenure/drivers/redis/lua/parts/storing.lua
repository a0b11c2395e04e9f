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

local function new_mark(i, seq)
    local due = tonumber(ARGV[i + 4]) or NOW + tonumber(ARGV[i + 5])
    return {
        PENDING, 0, 0, tonumber(ARGV[i + 3]), due, NOW, NOW, 0, 0, 0, 0, 0, 0, 0,
        tonumber(ARGV[i + 7]), seq, ARGV[i + 6], '', '', '', ARGV[i + 2], ARGV[i + 1]
    }
end

-- What jobs with a unique key or limits need; made when the first is met, so others pay nothing.
local function make_keyed()
    local marks = {} -- position in ARGV -> the mark of a job that is stored, without its place
    local holders = {} -- key -> {id, mark} after what this script has decided so far, or false
    local changed = {} -- id -> the mark of a holder that was stored before
    local blobs = {} -- id -> the blob of a holder that a dispatch has replaced

    local function keyed_mark(i)
        local mark = new_mark(i, false)
        local unique, limits = struct.unpack(TAIL, ARGV[i + 9])
        mark[EXTRAS] = (unique ~= '' and HAS_UNIQUE or 0) + (limits ~= '' and HAS_LIMITS or 0)
        mark[UNIQUE], mark[LIMITS] = unique, limits
        return mark, unique ~= '' and keys().of(unique)
    end

    local function holder_now(key)
        if holders[key] == nil then
            local found = keys().holder(key)
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
            local old = blobs[holder.id] or holder.blob or call('HGET', JOBS, holder.id) or '\n'
            local head = string.sub(old, 1, (string.find(old, '\n', 1, true) or 1) - 1)
            blobs[holder.id] = head .. string.sub(blob, (string.find(blob, '\n', 1, true)))
            held[SIZE] = mark[SIZE]
        end
        if held[SEQ] then -- else it is new itself
            changed[holder.id] = held
        end
    end

    -- The id of the job that refuses the one at `i`, or nil where it is to be stored.
    local function refused_by(i, is_refused_anyway)
        local mark, unique = keyed_mark(i)
        local holder = unique and holder_now(unique.key)
        if is_refused_anyway then
            return holder and holder.id or nil
        elseif holder then
            change_holder(holder, unique, mark, ARGV[i + 8])
            return holder.id
        end
        marks[i] = mark
        if unique then
            keys().hold(ARGV[i], unique)
            holders[unique.key] = { id = ARGV[i], mark = mark, blob = ARGV[i + 8] }
        end
        return nil
    end

    local function write_changed()
        for id, mark in pairs(changed) do
            if blobs[id] then
                put('HSET', JOBS, id, blobs[id])
            end
            put_mark(id, mark)
            shift(id, mark)
        end
    end

    return { blobs = blobs, marks = marks, refused_by = refused_by, write_changed = write_changed }
end

-- `fresh` are positions in ARGV.
local function write(fresh, keyed)
    local seq = #fresh > 0 and call('INCRBY', base .. 'seq', #fresh) - #fresh
    for n, i in ipairs(fresh) do
        local id, place = ARGV[i], string.format('%016d', seq + n)
        local mark, blob = keyed and keyed.marks[i], keyed and keyed.blobs[id]
        if mark then
            mark[SEQ] = place
        else
            mark = new_mark(i, place)
        end
        put('HSET', JOBS, id, blob or ARGV[i + 8])
        put_mark(id, mark)
        put('ZADD', ARRIVALS, place, id)
        enter(id, mark)
    end
    if keyed then
        keyed.write_changed()
    end
end

local function store_groups(groups)
    local known = known_ids(groups)
    local answers, fresh, keyed = {}, {}, nil
    for _, group in ipairs(groups) do
        local refused, new, before = false, {}, #answers
        for i = group[1], group[2], WIDTH do
            local content = known[ARGV[i]]
            local duplicate = content ~= nil and content ~= ARGV[i + 6]
            answers[#answers + 1] = duplicate and 1 or 0
            refused = refused or duplicate
            if content == nil then
                new[#new + 1] = i
            end
        end
        for _, i in ipairs(new) do
            local holder
            if ARGV[i + 9] ~= '' then
                keyed = keyed or make_keyed()
                holder = keyed.refused_by(i, refused)
            end
            if holder then
                answers[before + 1 + (i - group[1]) / WIDTH] = holder
            elseif not refused then
                known[ARGV[i]] = ARGV[i + 6]
                fresh[#fresh + 1] = i
            end
        end
    end
    write(fresh, keyed)
    return answers
end
