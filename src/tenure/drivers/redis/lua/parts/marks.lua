-- The marks of jobs: all that changes of a job, and what it is found by, packed as records.py reads it.
--
-- A mark has three pieces:
-- - fixed numbers: when it was updated, is due, was created; SEQ (16 digits), SIZE, CONTENT (8 bytes);
-- - the head, behind its length: the state and all about holds, alike for jobs that were enqueued or
--   claimed together. HELD says who made the current hold, and when: one text for all jobs of a claim;
-- - the kind: priority, queue, name, and only where EXTRAS has one of them the unique key and the
--   limits, all as given to enqueue; alike for jobs of one kind.
-- So a batch works a new head out once for each old one, and copies the other pieces.
-- 0 and '' stand for none. Texts follow their lengths.

-- The fields of an unpacked mark. `pack` makes HEAD_LENGTH.
local UPDATED, RUN_AT, CREATED, SEQ, SIZE, CONTENT, HEAD_LENGTH = 1, 2, 3, 4, 5, 6, 7
local STATE, CANCEL, EXTRAS, FINISHED, UNTIL, LEASE = 8, 9, 10, 11, 12, 13
local ATTEMPT, STALLS, SERIAL, SETTLED_SERIAL = 14, 15, 16, 17
local HELD, SETTLED_TOKEN, SETTLED_OUTCOME = 18, 19, 20
local PRIORITY, QUEUE, NAME, TAIL_AT, UNIQUE, LIMITS = 21, 22, 23, 24, 24, 25
-- EXTRAS is the sum of those that the job has, so that the usual job costs no look-up for them.
local HAS_ERROR, HAS_RESULT, HAS_PROGRESS, HAS_UNIQUE, HAS_LIMITS, HAS_HISTORY = 1, 2, 4, 8, 16, 32

-- WHOLE is '>I8I8I8c16I4c8', then H and HEAD, then KIND. Half the time of cmsgpack.
local WHOLE, TAIL = '>I8I8I8c16I4c8HBBBI8I8I8I4I4I4I4Hc0Bc0Bc0bHc0Hc0', '>Hc0Hc0'
local HEAD, KIND = '>BBBI8I8I8I4I4I4I4Hc0Bc0Bc0', '>bHc0Hc0'
local HEAD_NUMBERS = 47 -- the bytes of a head without its texts

local function has_tail(mark)
    return mark[EXTRAS] % 32 >= 8
end

local function unpacked(packed)
    local mark = listed(pcall(struct.unpack, WHOLE, packed))
    if mark and mark[EXTRAS] ~= 0 and has_tail(mark) then
        local tail = listed(pcall(struct.unpack, TAIL, packed, mark[TAIL_AT]))
        if not tail then
            return nil
        end
        mark[UNIQUE], mark[LIMITS] = tail[1], tail[2]
    end
    return mark
end

local function pack(m)
    local held, token, outcome = m[HELD], m[SETTLED_TOKEN], m[SETTLED_OUTCOME]
    local packed = struct.pack(
        WHOLE, m[1], m[2], m[3], m[4], m[5], m[6], HEAD_NUMBERS + #held + #token + #outcome,
        m[8], m[9], m[10], m[11], m[12], m[13], m[14], m[15], m[16], m[17],
        #held, held, #token, token, #outcome, outcome,
        m[PRIORITY], #m[QUEUE], m[QUEUE], #m[NAME], m[NAME]
    )
    if m[EXTRAS] ~= 0 and has_tail(m) then
        packed = packed .. struct.pack(TAIL, #m[UNIQUE], m[UNIQUE], #m[LIMITS], m[LIMITS])
    end
    return packed
end

-- The marks of ids, each beside its own: false where there is none, nil where it is damaged.
local function read_marks(ids)
    local marks = {}
    for i, packed in ipairs(read_all(MARKS, ids)) do
        marks[i] = packed and unpacked(packed)
    end
    return marks
end

local function read_mark(id)
    local packed = call('HGET', MARKS, id)
    return packed and unpacked(packed)
end

local function put_mark(id, mark)
    mark[UPDATED] = NOW
    put('HSET', MARKS, id, pack(mark))
end

local function token_of(mark)
    return mark[HELD] ~= '' and struct.unpack('>Bc0', mark[HELD]) or ''
end

-- I3: whether the hold is the current one, expired or not.
local function held_by(mark, serial, token)
    return mark[STATE] == PROCESSING and mark[SERIAL] == serial and token_of(mark) == token
end

local function has(mark, extra)
    return math.floor(mark[EXTRAS] / extra) % 2 == 1
end
