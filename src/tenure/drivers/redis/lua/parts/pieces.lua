-- The pieces of packed marks (parts/marks.lua), for what is done to many jobs alike: to store, claim
-- and complete the usual ones.

-- The head and the kind of a packed mark, as they are; nil where it is too short to have them.
local function pieces(packed)
    local high, low = string.byte(packed, 53, 54)
    if low then
        local at = 55 + 256 * high + low
        return string.sub(packed, 55, at - 1), string.sub(packed, at)
    end
end

-- A head behind its length.
local function packed_head(
    state, cancel, extras, finished, ends, lease, attempt, stalls, serial, settled_serial,
    held, token, outcome
)
    return struct.pack(
        '>HBBBI8I8I8I4I4I4I4Hc0Bc0Bc0', HEAD_NUMBERS + #held + #token + #outcome,
        state, cancel, extras, finished, ends, lease, attempt, stalls, serial, settled_serial,
        #held, held, #token, token, #outcome, outcome
    )
end

-- What a head says, in the order of its fields; nil for one that cannot be read.
local function head_fields(head)
    local fields = listed(pcall(struct.unpack, HEAD, head))
    return fields and fields[14] == #head + 1 and fields or nil
end

-- Priority and queue of a kind without unique key and limits; nil for another.
local function plain_kind(kind)
    local fields = listed(pcall(struct.unpack, KIND, kind))
    if fields and fields[4] == #kind + 1 then
        return fields[1], fields[2]
    end
end

local NOW_PACKED = struct.pack('>I8', NOW)
