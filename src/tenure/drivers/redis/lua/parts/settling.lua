-- settle_all(at): records outcomes. Shared by record and exchange.
--
-- In, from ARGV[at] on: how many, then for each id, serial, token, name of the outcome, and where
-- that is not 'completed' (without a result) four more: kind, delay or '', failure or result or '',
-- what the history gets or ''.
-- Out: one number for each (as in replies.py), and where in ARGV it ended.
-- Implements outcomes.settle: the state, how many starts are given back, whether the row of stalls
-- ends, whether the wish to cancel turns it into a cancellation.

local APPLIED, REPEATED, FENCED, UNKNOWN = 0, 1, 2, 3

local KINDS = {
    [''] = { COMPLETED, 0, true, false }, -- completed
    returned = { COMPLETED, 0, true, false }, -- completed with a result
    failed = { FAILED, 0, true, false },
    unstarted_failed = { FAILED, 1, true, false },
    cancelled = { CANCELLED, 0, true, false },
    unstarted_cancelled = { CANCELLED, 1, true, false },
    retried = { PENDING, 0, true, true },
    snoozed = { PENDING, 1, true, true },
    released = { PENDING, 1, false, true },
}

local function settle(id, mark, outcome, kind, delay, content, how)
    local rule = KINDS[kind]
    local state, stalls_end = rule[1], rule[3]
    if rule[4] and mark[CANCEL] == 1 then
        state, stalls_end = CANCELLED, true
    end
    if kind == '' or kind == 'returned' then
        drop_extra(ERRORS, HAS_ERROR, id, mark)
        if kind == 'returned' then
            put_extra(RESULTS, HAS_RESULT, id, mark, content)
        else
            drop_extra(RESULTS, HAS_RESULT, id, mark)
        end
    elseif content ~= '' then
        put_extra(ERRORS, HAS_ERROR, id, mark, content)
    end
    if how ~= '' then
        remember(id, mark, how)
    end
    mark[SETTLED_SERIAL], mark[SETTLED_TOKEN], mark[SETTLED_OUTCOME] =
        mark[SERIAL], token_of(mark), outcome
    mark[ATTEMPT] = mark[ATTEMPT] - rule[2]
    mark[CANCEL] = 0
    if stalls_end then
        mark[STALLS] = 0
    end
    if state == PENDING and delay ~= '' then
        mark[RUN_AT] = NOW + tonumber(delay)
    end
    become(id, mark, state)
    if state == COMPLETED then
        weigh(mark[QUEUE], mark[SIZE] + (kind == 'returned' and #content or 0))
    end
    put_mark(id, mark)
end

-- --- the usual end -------------------------------------------------------------------------------

-- What completing makes of a head; false where more is to be done than to write the mark.
local function completed_head(head)
    local f = head_fields(head)
    if not f or f[1] ~= PROCESSING or f[3] % 4 ~= 0 or f[3] % 32 >= 8 then
        return false
    end
    local token = struct.unpack('>Bc0', f[11])
    return {
        serial = int(f[9]), token = token,
        head = packed_head(
            COMPLETED, 0, f[3], NOW, 0, 0, f[7], 0, f[9], f[9], '', token, 'completed'
        ),
    }
end

-- Jobs that completed without a result, by what they have in common; and their writes.
local completed, places = {}, {}
local leases, marks -- made when there is the first, so that theirs is not the first write before

local function place_of_kind(kind)
    local _, queue = plain_kind(kind)
    return queue and {
        ended = batch_of('ZADD', ended_key(COMPLETED, queue)), queue = queue, number = 0, size = 0,
    }
end

-- Complete the job, if nothing else is to be done for it; whether it did.
local function completes(id, packed, serial, token)
    local head, kind = pieces(packed)
    if not head then
        return false
    elseif completed[head] == nil then
        completed[head] = completed_head(head)
    end
    local done = completed[head]
    if not done or done.serial ~= serial or done.token ~= token then
        return false
    end
    local place = places[kind]
    if not place then
        leases, marks = batch_of('ZREM', LEASES), batch_of('HSET', MARKS)
        place = place_of_kind(kind)
        if not place then
            return false
        end
        places[kind] = place
    end
    local member = string.sub(packed, 25, 40) .. id
    leases[#leases + 1] = member
    add(marks, id, NOW_PACKED .. string.sub(packed, 9, 52) .. done.head .. kind)
    add(place.ended, NOW_TEXT, member)
    place.number, place.size = place.number + 1, place.size + struct.unpack('>I4', packed, 41)
    return true
end

local function count_completed()
    for _, place in pairs(places) do
        count(PROCESSING, place.queue, -place.number)
        count(COMPLETED, place.queue, place.number)
        weigh(place.queue, place.size)
    end
end

-- --- all of them ---------------------------------------------------------------------------------

local function settle_other(id, packed, i)
    local mark, serial, token = packed and unpacked(packed), tonumber(ARGV[i + 1]), ARGV[i + 2]
    local outcome = ARGV[i + 3]
    if not mark then
        return UNKNOWN
    elseif held_by(mark, serial, token) then
        if outcome == 'completed' then
            settle(id, mark, outcome, '', '', '', '')
        else
            settle(id, mark, outcome, ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7])
        end
        return APPLIED
    elseif mark[SETTLED_SERIAL] == serial and mark[SETTLED_TOKEN] == token
        and mark[SETTLED_OUTCOME] == outcome then
        return REPEATED
    end
    return FENCED
end

local function settle_all(at)
    local ids, firsts, answers, i = {}, {}, {}, at + 1
    for n = 1, tonumber(ARGV[at]) do
        ids[n], firsts[n] = ARGV[i], i
        i = i + (ARGV[i + 3] == 'completed' and 4 or 8)
    end
    for n, packed in ipairs(read_all(MARKS, ids)) do
        local id, first = ids[n], firsts[n]
        local usual = packed and ARGV[first + 3] == 'completed'
        if usual and completes(id, packed, ARGV[first + 1], ARGV[first + 2]) then
            answers[n] = APPLIED
        else
            answers[n] = settle_other(id, packed, first)
        end
    end
    count_completed()
    flush()
    return answers, i
end
