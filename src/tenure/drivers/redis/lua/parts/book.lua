-- The schedules of the store: `schedules` has for each id paused (1 or 0), when its revision was
-- stored, its newest tick, the revision behind its length, and the definition, which is never looked
-- into. Shared by the scripts about schedules.

local SCHEDULES = base .. 'schedules'
local SCHEDULE = '>BI8I8Hc0'

-- The schedule, or nil where there is none, or none that can be read.
local function read_schedule(id)
    local packed = call('HGET', SCHEDULES, id)
    local parts = packed and listed(pcall(struct.unpack, SCHEDULE, packed))
    return parts and {
        paused = parts[1], created = parts[2], last = parts[3], revision = parts[4],
        definition = string.sub(packed, parts[5]),
    }
end

local function packed_schedule(s)
    local head = struct.pack(SCHEDULE, s.paused, s.created, s.last, #s.revision, s.revision)
    return head .. s.definition
end
