-- keys(): which job holds which unique key, and until when. Puts writes; the caller flushes.
--
-- `unique` has for each key that is held 16 digits of the end (zeros for none), T for the mark of a
-- throttle or J for a job's hold, and the id. `unique_ends` sorts the keys that have an end, so that
-- prune finds them; until then they are overwritten by whoever takes the key next.
-- The UniqueKey of a job is mark[UNIQUE], as requests.py packs it: 1 where the hold ends with the
-- first start, the mode, period and max_wait in seconds (negative for none), the key.
-- Made when the first job with such a key is met: others pay nothing.

local UNIQUE_KEYS, UNIQUE_ENDS = base .. 'unique', base .. 'unique_ends'
local REPLACE, DEBOUNCE, THROTTLE = 1, 2, 3
local LATEST = 9e15 -- microseconds: what 16 digits hold, whatever period was asked for

local function make_keys()
    local function of(packed)
        local started, mode, period, max_wait = struct.unpack('>BBdd', packed)
        return {
            key = string.sub(packed, 19), mode = mode, started = started == 1,
            period = period >= 0 and period * 1000000 or nil,
            max_wait = max_wait >= 0 and max_wait * 1000000 or nil,
        }
    end

    local function parts_of(entry)
        return {
            ends = tonumber(string.sub(entry, 1, 16)) or 0,
            throttle = string.sub(entry, 17, 17) == 'T', id = string.sub(entry, 18),
        }
    end

    -- Who holds the key, with the mark, or nil. What a damaged record left behind holds nothing: a job
    -- that is gone or has ended has no key but by a throttle (I8).
    local function holder(key)
        local entry = call('HGET', UNIQUE_KEYS, key)
        local held = entry and parts_of(entry)
        if not held or (held.ends > 0 and held.ends <= NOW) then
            return nil
        end
        held.mark = read_mark(held.id)
        local ended = held.mark == false or (held.mark and held.mark[STATE] >= COMPLETED)
        if ended and not held.throttle then
            return nil
        end
        return held
    end

    -- Let the job hold the key, in the place of whoever did; 0 is no end.
    local function hold_until(id, unique, ends)
        if ends > 0 then
            put('ZADD', UNIQUE_ENDS, int(ends), unique.key)
        else
            put('ZREM', UNIQUE_ENDS, unique.key)
        end
        local kind = unique.mode == THROTTLE and 'T' or 'J'
        put('HSET', UNIQUE_KEYS, unique.key, string.format('%016d', ends) .. kind .. id)
    end

    -- The same from now on, for its period.
    local function hold(id, unique)
        local period = unique.period
        hold_until(id, unique, period and math.floor(math.min(NOW + period, LATEST) + 0.5) or 0)
    end

    -- The job has ended, or started where that is the end of its hold.
    local function free(id, mark)
        local key = of(mark[UNIQUE]).key
        local entry = call('HGET', UNIQUE_KEYS, key)
        local held = entry and parts_of(entry)
        if held and held.id == id and not held.throttle then
            put('HDEL', UNIQUE_KEYS, key)
            put('ZREM', UNIQUE_ENDS, key)
        end
    end

    local function free_started(id, mark)
        if of(mark[UNIQUE]).started then
            free(id, mark)
        end
    end

    -- Drop keys whose end has come, and say how many were looked at.
    local function forget(most)
        local past = call('ZRANGEBYSCORE', UNIQUE_ENDS, '-inf', NOW_TEXT, 'LIMIT', 0, most)
        local entries = #past > 0 and call('HMGET', UNIQUE_KEYS, unpack(past)) or {}
        for n, key in ipairs(past) do
            local ends = entries[n] and parts_of(entries[n]).ends or 0
            if ends > 0 and ends <= NOW then
                put('HDEL', UNIQUE_KEYS, key)
            end
            put('ZREM', UNIQUE_ENDS, key)
        end
        return #past
    end

    return {
        forget = forget, free = free, free_started = free_started, hold = hold,
        hold_until = hold_until, holder = holder, of = of,
    }
end

local keys_made

keys = function()
    keys_made = keys_made or make_keys()
    return keys_made
end
