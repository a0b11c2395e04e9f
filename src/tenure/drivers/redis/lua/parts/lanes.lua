-- lanes(): what makes jobs with limits wait, and lets them go on.
--
-- Waiting jobs of one queue, priority and set of keys form a *lane*, sorted by due time and arrival
-- in `lane:..`: either all that are due are held by a limit, or none is. Only the head of a lane is
-- *exposed*: it stands in the ready place, like a job without limits. The others are *kept back*
-- (`kept:..`). A claim that meets a head takes it, and the next of the lane is exposed; or finds one
-- of its keys full and *parks* the lane on it (`parked:<key>`): then the head is kept back as well.
-- So what a limit holds costs no other claim anything, however many they are.
--
-- Exposing costs one more look and is always right. What must never be is a lane that stays parked
-- while its key has room. Therefore: of each key with room and each queue, no lane is parked on it,
-- or one with that key and a due head is exposed. Whatever ends this exposes the best one parked:
-- an end of a hold, a changed limit, time (`freeing` has when the rate of a full key lets a claim
-- through), a claim, a head that goes away.
--
-- `holds` counts the holds of each key, `claims:<key>` has the recent claims where a rate governs,
-- `placed` the lane of what is exposed or held, so that a damaged mark keeps no place for ever.
--
-- Made when the first job with limits is met: others pay nothing. Writes at once, which is right
-- since flush makes its own writes first (see store.lua), and a claim goes on with what it exposes.

local KEPT, PARKED, PLACED = base .. 'kept:', base .. 'parked:', base .. 'placed'
local PARKED_LANES, PARKED_KEYS = base .. 'parked_lanes', base .. 'parked_keys'

local function make_lanes()
    local limits = make_limits()
    local full, full_key, rate_free_at = limits.full, limits.full_key, limits.rate_free_at
    local known = {}
    local exposed = {} -- {lane, member, due} since a claim has looked at them

    local function lane_named(name)
        local lane = known[name]
        if not lane then
            local priority, queue, at = struct.unpack('>bHc0', name)
            lane = {
                name = name, priority = priority, queue = queue, keys = {},
                all = base .. 'lane:' .. name, ready = ready_key(queue, priority),
                kept = KEPT .. queue, beginning = struct.pack('>Hc0', #queue, queue),
            }
            while at <= #name do
                lane.keys[#lane.keys + 1], at = struct.unpack('>Hc0', name, at)
            end
            known[name] = lane
        end
        return lane
    end

    local function head_of(lane)
        local found = call('ZRANGE', lane.all, 0, 0, 'WITHSCORES')
        return found[1], tonumber(found[2])
    end

    -- --- whether a lane is parked ----------------------------------------------------------------

    -- Sorts by queue, then as claims do: priority, due time, arrival.
    local function park(lane, key, member, due)
        local text = lane.beginning .. string.format('%03d%016d', 100 - lane.priority, due)
            .. string.sub(member, 1, 16) .. lane.name
        call('ZADD', PARKED .. key, '0', text)
        call('ZADD', PARKED_KEYS, '0', key)
        call('HSET', PARKED_LANES, lane.name, struct.pack('>Hc0', #key, key) .. text)
        local free_at = rate_free_at(key)
        if free_at then
            call('ZADD', FREEING, int(free_at), 'k' .. key)
        end
    end

    local function unpark(lane, key, text)
        call('ZREM', PARKED .. key, text)
        call('HDEL', PARKED_LANES, lane.name)
        if call('EXISTS', PARKED .. key) == 0 then
            call('ZREM', PARKED_KEYS, key)
        end
    end

    -- The key that the lane is parked on and its entry there, or nil.
    local function parked_on(lane)
        local entry = call('HGET', PARKED_LANES, lane.name)
        if entry then
            local key, at = struct.unpack('>Hc0', entry)
            return key, string.sub(entry, at)
        end
    end

    local function expose(lane, member, due)
        call('ZREM', lane.kept, member)
        call('ZADD', levels_key(lane.queue), int(-lane.priority), int(lane.priority))
        call('ZADD', lane.ready, int(due), member)
        call('HSET', PLACED, id_in(member), lane.name)
        exposed[#exposed + 1] = { lane = lane, member = member, due = due }
    end

    local function hide(lane, member, due)
        call('ZREM', lane.ready, member)
        left_ready[lane.ready] = { lane.queue, lane.priority }
        call('ZADD', lane.kept, int(due), member)
        call('HDEL', PLACED, id_in(member))
    end

    -- Expose the best lane of the queue that is parked on the key; go on until one's head is due.
    local function expose_best(key, beginning)
        while true do
            local text = call(
                'ZRANGEBYLEX', PARKED .. key, '[' .. beginning, '(' .. beginning .. '\255',
                'LIMIT', 0, 1
            )[1]
            if not text then
                return
            end
            local lane = lane_named(string.sub(text, #beginning + 36))
            unpark(lane, key, text)
            local member, due = head_of(lane)
            if member then
                expose(lane, member, due)
                if due <= NOW then
                    return
                end
            end
        end
    end

    -- The queue has one exposed lane less; each of these keys that has room exposes another.
    local function refill(lane, but)
        for _, key in ipairs(lane.keys) do
            if key ~= but and call('EXISTS', PARKED .. key) == 1 and not full(key) then
                expose_best(key, lane.beginning)
            end
        end
    end

    -- The key may have room: expose one lane of each queue, and tell those who wait there.
    local function loosen(key, not_told)
        if call('EXISTS', PARKED .. key) == 0 then
            return
        elseif full(key) then
            local free_at = rate_free_at(key)
            if free_at then
                call('ZADD', FREEING, int(free_at), 'k' .. key)
            end
            return
        end
        local from = '-'
        while true do
            local text = call('ZRANGEBYLEX', PARKED .. key, from, '+', 'LIMIT', 0, 1)[1]
            if not text then
                return
            end
            local queue, at = struct.unpack('>Hc0', text)
            local beginning = string.sub(text, 1, at - 1)
            expose_best(key, beginning)
            if not (not_told and not_told[queue]) then
                wake(queue)
            end
            from = '(' .. beginning .. '\255'
        end
    end

    -- --- what flush does, in the order in which it was put ---------------------------------------

    local after = {}

    function after.enter(lane, member, due)
        local first, first_due = head_of(lane)
        call('ZADD', lane.all, int(due), member)
        if first and (first_due < due or (first_due == due and first < member)) then
            call('ZADD', lane.kept, int(due), member)
            return
        end
        local key, text = parked_on(lane)
        if key then
            unpark(lane, key, text)
        elseif first then
            hide(lane, first, first_due)
        end
        local no_room = due <= NOW and (key or not first) and full_key(lane)
        if no_room then
            call('ZADD', lane.kept, int(due), member)
            park(lane, no_room, member, due)
        else
            expose(lane, member, due)
            wake(lane.queue)
        end
    end

    function after.leave(lane, member)
        local first = head_of(lane)
        call('ZREM', lane.all, member)
        call('ZREM', lane.kept, member)
        if first ~= member then
            return
        end
        local key, text = parked_on(lane)
        local following, due = head_of(lane)
        if key then
            unpark(lane, key, text)
            if following and due <= NOW then
                park(lane, key, following, due)
            elseif following then
                expose(lane, following, due)
            end
            return
        end
        call('ZREM', lane.ready, member)
        left_ready[lane.ready] = { lane.queue, lane.priority }
        call('HDEL', PLACED, id_in(member))
        if following then
            expose(lane, following, due)
        end
        if not following or due > NOW then
            refill(lane)
        end
        wake(lane.queue)
    end

    -- The hold of a job has ended.
    function after.give_back(lane, member)
        call('HDEL', PLACED, id_in(member))
        for _, key in ipairs(lane.keys) do
            if call('HINCRBY', HOLDS, key, '-1') <= 0 then
                call('HDEL', HOLDS, key)
            end
            loosen(key)
        end
    end

    local function run(pending)
        for _, entry in ipairs(pending) do
            after[entry[1]](lane_named(entry[2]), entry[3], entry[4])
        end
    end

    -- --- claims ----------------------------------------------------------------------------------

    -- A claim has met the head, and this key of it is full.
    local function pass_over(lane, member, key)
        local due = tonumber(call('ZSCORE', lane.ready, member))
        hide(lane, member, due)
        park(lane, key, member, due)
        refill(lane, key)
    end

    -- A claim takes the head, and removes it from the ready place. The best one of each key that
    -- still has room is exposed, so that they are taken in the order of claims.
    local function take(lane, member, serial)
        call('ZREM', lane.all, member)
        for _, key in ipairs(lane.keys) do
            limits.count_claim(key, id_in(member) .. ':' .. int(serial))
        end
        local following, due = head_of(lane)
        local no_room = following and due <= NOW and full_key(lane)
        if no_room then
            park(lane, no_room, following, due)
        elseif following then
            expose(lane, following, due)
        end
        refill(lane)
    end

    -- What has been exposed since the last call.
    local function newly_exposed()
        local list = exposed
        exposed = {}
        return list
    end

    return {
        full_key = full_key, lane_named = lane_named, loosen = loosen,
        newly_exposed = newly_exposed, pass_over = pass_over, rate_free_at = rate_free_at,
        run = run, take = take,
    }
end

lanes = function()
    lanes_made = lanes_made or make_lanes()
    return lanes_made
end
