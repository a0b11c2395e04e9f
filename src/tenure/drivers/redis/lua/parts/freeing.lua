-- What lets lanes go on that is no end of a hold: time, and limits that are put or dropped.
--
-- `freeing` sorts by instant: 'k' and a key that was full by its rate, or 's', the length and text of
-- a beginning of keys, and the key after which a changed limit on them has still to be looked into.

local LOOSENED_AT_ONCE = 1000

-- Look into parked keys with this beginning, after `cursor`.
local function loosen_all(beginning, cursor, not_told)
    local from = cursor == '' and '[' .. beginning or '(' .. cursor
    local keys = call(
        'ZRANGEBYLEX', PARKED_KEYS, from, '(' .. beginning .. '\255', 'LIMIT', 0, LOOSENED_AT_ONCE
    )
    for _, key in ipairs(keys) do
        lanes().loosen(key, not_told)
    end
    if #keys == LOOSENED_AT_ONCE then
        local rest = struct.pack('>Hc0', #beginning, beginning) .. keys[#keys]
        call('ZADD', FREEING, '0', 's' .. rest)
    end
end

-- The limit of this key, or beginning and '*', is another one now.
local function limit_changed(key)
    if string.sub(key, -1) == '*' then
        loosen_all(string.sub(key, 1, -2), '')
    else
        lanes().loosen(key)
    end
end

local function free(entry, not_told)
    call('ZREM', FREEING, entry)
    if string.sub(entry, 1, 1) == 's' then
        local beginning, at = struct.unpack('>Hc0', entry, 2)
        loosen_all(beginning, string.sub(entry, at), not_told)
        return
    end
    local key = string.sub(entry, 2)
    local free_at = rate_free_at(key)
    if free_at then -- there were claims meanwhile
        call('ZADD', FREEING, int(free_at), entry)
    else
        lanes().loosen(key, not_told)
    end
end

-- Let those go on whose time has come; whether there are more. What lies further ahead than a second
-- and what the clocks of two claims may differ by was written before the clock was set back.
local function free_in_time(not_told)
    if call('EXISTS', FREEING) == 0 then
        return false
    end
    local far = '(' .. int(NOW + 3 * SECOND)
    local past = call('ZRANGEBYSCORE', FREEING, '-inf', NOW_TEXT, 'LIMIT', 0, LOOSENED_AT_ONCE)
    local wrong = call('ZRANGEBYSCORE', FREEING, far, '+inf', 'LIMIT', 0, LOOSENED_AT_ONCE)
    for _, entries in ipairs({ past, wrong }) do
        for _, entry in ipairs(entries) do
            free(entry, not_told)
        end
    end
    return math.max(#past, #wrong) == LOOSENED_AT_ONCE
end
