-- make_keyed(): what storing needs for jobs with a unique key or limits; made for each call of it.
-- Positions are those in ARGV. Reads, and puts writes; the caller flushes.

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
