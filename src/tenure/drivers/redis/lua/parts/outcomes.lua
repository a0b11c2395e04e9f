-- settle_other(id, packed, i): records any outcome; `i` is its position, see parts/settling.lua.
-- Implements outcomes.settle: the state, how many starts are given back, whether the row of stalls
-- ends, whether the wish to cancel turns it into a cancellation. Puts writes; the caller flushes.

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
