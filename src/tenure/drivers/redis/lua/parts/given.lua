-- The jobs given to a script, five arguments each: id, when it is due ('' for now, '@' and the instant,
-- '+' and the delay), then of its mark (parts/marks.lua) size and content, and the kind; blob.
-- Shared by enqueue and fire.

local WIDTH = 5

local function content_of(i)
    return string.sub(ARGV[i + 2], 5)
end

local function due_at(when)
    if when == '' then
        return NOW
    end
    local number = tonumber(string.sub(when, 2))
    return string.byte(when) == 64 and number or NOW + number -- 64 is '@'
end
