-- Which limit governs a key, whether the key is full, and when its rate lets a claim through.
--
-- `limits` has for each the claims in a second and the holds at once, as '5:10', either may be
-- empty. They are few: read once by a script, when the first job with limits is met.

local DEFINITIONS, CLAIMS = base .. 'limits', base .. 'claims:'
local HOLDS, FREEING = base .. 'holds', base .. 'freeing' -- see parts/lanes.lua
local SECOND, EXPIRY = 1000000, '3600' -- the expiry collects garbage only

local exact, beginnings, governed -- limits by key; those ending in '*'; what was found, by key

local function read_limits()
    exact, beginnings, governed = {}, {}, {}
    local flat = call('HGETALL', DEFINITIONS)
    for i = 1, #flat, 2 do
        local key = flat[i]
        local rate, concurrent = string.match(flat[i + 1], '^(%d*):(%d*)$')
        local limit = { key = key, rate = tonumber(rate), concurrent = tonumber(concurrent) }
        exact[key] = limit
        if string.sub(key, -1) == '*' then
            beginnings[#beginnings + 1] = limit
        end
    end
    table.sort(beginnings, function(a, b) return #a.key > #b.key end)
end

-- The limit on the key itself, else the one with the longest beginning, else false.
local function governing(key)
    if not governed then
        read_limits()
    end
    if governed[key] == nil then
        local found = exact[key] or false
        for _, limit in ipairs(found and {} or beginnings) do
            if string.sub(key, 1, #limit.key - 1) == string.sub(limit.key, 1, -2) then
                found = limit
                break
            end
        end
        governed[key] = found
    end
    return governed[key]
end

-- When the rate of a key that is full by it lets a claim through, or nil. Claims of the far future
-- were made before the clock was set back, and do not count.
local function rate_free_at(key)
    local limit = governing(key)
    local rate = limit and limit.rate
    local from, to = rate and '(' .. int(NOW - SECOND), int(NOW + SECOND)
    if not rate or call('ZCOUNT', CLAIMS .. key, from, to) < rate then
        return nil
    end
    local nth = call(
        'ZREVRANGEBYSCORE', CLAIMS .. key, to, from, 'WITHSCORES', 'LIMIT', math.max(rate - 1, 0), 1
    )
    return tonumber(nth[2] or NOW) + SECOND
end

local function full(key)
    local limit = governing(key)
    if not limit then
        return false
    end
    local holds = limit.concurrent and tonumber(call('HGET', HOLDS, key) or 0)
    return (holds and holds >= limit.concurrent) or rate_free_at(key) ~= nil
end

local function full_key(lane)
    for _, key in ipairs(lane.keys) do
        if full(key) then
            return key
        end
    end
    return nil
end

-- Count a claim, and the hold that it makes: of every key, since a limit may be put at any time.
local function count_claim(key, name)
    call('HINCRBY', HOLDS, key, '1')
    local limit = governing(key)
    if limit and limit.rate then
        local claims = CLAIMS .. key
        call('ZADD', claims, NOW_TEXT, name)
        call('ZREMRANGEBYSCORE', claims, '-inf', int(NOW - SECOND))
        call('ZREMRANGEBYSCORE', claims, '(' .. int(NOW + SECOND), '+inf')
        call('EXPIRE', claims, EXPIRY)
        local free_at = rate_free_at(key)
        if free_at then
            call('ZADD', FREEING, int(free_at), 'k' .. key)
        end
    end
end
