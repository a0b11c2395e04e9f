-- store_groups(groups): stores new jobs, group by group; of each group all or none.
--
-- A group is {first, last}: where in ARGV its jobs are, five arguments each: id, when it is due
-- ('' for now, '@' and the instant, '+' and the delay), then of its mark (parts/marks.lua) size and
-- content, and the kind; blob.
-- Out: the answer for each, over all groups: 0 for stored or known, 1 for an id that is known with
-- other content, or the id of the job that holds its unique key.
-- Shared by enqueue and fire. Reads everything first, then puts its writes; the caller flushes.

local WIDTH = 5

local function content_of(i)
    return string.sub(ARGV[i + 2], 5)
end

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

local function due_at(when)
    if when == '' then
        return NOW
    end
    local number = tonumber(string.sub(when, 2))
    return string.byte(when) == 64 and number or NOW + number -- 64 is '@'
end

-- What jobs with a unique key or limits need; made when the first is met, so others pay nothing.
local function make_keyed()
    local marks = {} -- position in ARGV -> the mark of a job that is stored, without its place
    local holders = {} -- key -> {id, mark} after what this script has decided so far, or false
    local changed = {} -- id -> the mark of a holder that was stored before
    local blobs = {} -- id -> the blob of a holder that a dispatch has replaced

    local function keyed_mark(i)
        local priority, queue, name, at = struct.unpack(KIND, ARGV[i + 3])
        local unique, limits = struct.unpack(TAIL, ARGV[i + 3], at)
        local extras = (unique ~= '' and HAS_UNIQUE or 0) + (limits ~= '' and HAS_LIMITS or 0)
        local size = struct.unpack('>I4', ARGV[i + 2])
        local mark = {
            NOW, due_at(ARGV[i + 1]), NOW, false, size, content_of(i), 0,
            PENDING, 0, extras, 0, 0, 0, 0, 0, 0, 0, '', '', '', priority, queue, name,
            unique, limits,
        }
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
            change_holder(holder, unique, mark, ARGV[i + 4])
            return holder.id
        end
        marks[i] = mark
        if unique then
            keys().hold(ARGV[i], unique)
            holders[unique.key] = { id = ARGV[i], mark = mark, blob = ARGV[i + 4] }
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
