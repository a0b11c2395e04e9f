-- settle_all(at): records outcomes. Shared by record and exchange.
--
-- In, from ARGV[at] on: how many, then for each id, serial, token, name of the outcome, and where
-- that is not 'completed' (without a result) four more: kind, delay or '', failure or result or '',
-- what the history gets or ''.
-- Out: one number for each (as in replies.py), and where in ARGV it ended.
-- Completes the usual job itself, and leaves all others to parts/outcomes.lua.

local APPLIED, REPEATED, FENCED, UNKNOWN = 0, 1, 2, 3

local function completed_head(f, token, extras, outcome)
    return packed_head(
        COMPLETED, 0, extras, NOW, 0, 0, f[7], 0, f[9], f[9], '', token, outcome
    )
end

-- What is known of the head of a job that can be completed; false where more is to be done for it
-- than to write the mark and a result.
local function completable(head)
    local f = head_fields(head)
    if not f or f[1] ~= PROCESSING or f[3] % 4 ~= 0 or f[3] % 32 >= 8 then
        return false
    end
    local token = struct.unpack('>Bc0', f[11])
    return {
        fields = f, serial = int(f[9]), token = token,
        without_result = completed_head(f, token, f[3], 'completed'),
    }
end

-- Jobs that completed, by what they have in common; and their writes.
local known, places = {}, {}
local leases, marks -- made when there is the first, so that theirs is not the first write before

local function place_of_kind(kind)
    local _, queue = plain_kind(kind)
    return queue and {
        ended = batch_of('ZADD', ended_key(COMPLETED, queue)), queue = queue, number = 0, size = 0,
    }
end

-- Complete the job whose item is at `i`, if it is a usual one; whether it did.
local function completes(id, packed, i)
    local head, kind = pieces(packed)
    if not head then
        return false
    elseif known[head] == nil then
        known[head] = completable(head)
    end
    local one, place = known[head], places[kind]
    if not one or one.serial ~= ARGV[i + 1] or one.token ~= ARGV[i + 2] then
        return false
    elseif not place then
        if ARGV[i + 3] ~= 'completed' then
            batch_of('HSET', RESULTS) -- the first write: a result may be refused, an end need not
        end
        leases, marks = batch_of('ZREM', LEASES), batch_of('HSET', MARKS)
        place = place_of_kind(kind)
        if not place then
            return false
        end
        places[kind] = place
    end
    local member, text = string.sub(packed, 25, 40) .. id, one.without_result
    place.number, place.size = place.number + 1, place.size + struct.unpack('>I4', packed, 41)
    if ARGV[i + 3] ~= 'completed' then
        local f, result = one.fields, ARGV[i + 6]
        text = completed_head(f, one.token, f[3] + HAS_RESULT, ARGV[i + 3])
        put('HSET', RESULTS, id, result)
        place.size = place.size + #result
    end
    leases[#leases + 1] = member
    add(marks, id, NOW_PACKED .. string.sub(packed, 9, 52) .. text .. kind)
    add(place.ended, NOW_TEXT, member)
    return true
end

local function count_completed()
    for _, place in pairs(places) do
        count(PROCESSING, place.queue, -place.number)
        count(COMPLETED, place.queue, place.number)
        weigh(place.queue, place.size)
    end
end

local function settle_all(at)
    local ids, firsts, answers, i = {}, {}, {}, at + 1
    for n = 1, tonumber(ARGV[at]) do
        ids[n], firsts[n] = ARGV[i], i
        i = i + (ARGV[i + 3] == 'completed' and 4 or 8)
    end
    for n, packed in ipairs(read_all(MARKS, ids)) do
        local id, first = ids[n], firsts[n]
        local completed = ARGV[first + 3] == 'completed' or ARGV[first + 4] == 'returned'
        if packed and completed and completes(id, packed, first) then
            answers[n] = APPLIED
        else
            answers[n] = settle_other(id, packed, first)
        end
    end
    count_completed()
    flush()
    return answers, i
end
