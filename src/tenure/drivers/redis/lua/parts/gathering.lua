-- fits(claim, bytes), give(claim, id, whole, has_extras): what a claim has gathered so far (see
-- parts/taking.lua), within the bounds that it was asked for.

local function fits(claim, bytes)
    local size = claim.size + bytes
    claim.size = size
    claim.full_up = claim.full_up or #claim.ids >= claim.limit
        or (#claim.ids > 0 and size > claim.max_bytes)
    return not claim.full_up
end

local function give(claim, id, whole, has_extras)
    local n = #claim.ids + 1
    claim.ids[n], claim.packed[n] = id, whole
    if has_extras then
        claim.with_extras[#claim.with_extras + 1] = n
    end
end
