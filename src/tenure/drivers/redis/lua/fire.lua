-- Lets instants of schedules pass, and stores their jobs.
-- In: for each tick five: schedule, revision, previous, instant, and 1 or 0 for with or without a
--     job, which follows as parts/given.lua has it.
-- Out: one number for each: 0 fired, 1 lost, 2 early.
-- One by one: a tick sees what those before it have changed. A job that is known, or whose unique
-- key is held, lets the instant pass all the same.
-- uses: store, pieces, given
-- seldom: marks, places, limits, lanes, unique, keyed
-- uses: storing, book

local book, answers, jobs = {}, {}, {}

local function pass_tick(id, revision, previous, instant)
    if book[id] == nil then
        book[id] = read_schedule(id) or false
    end
    local schedule = book[id]
    if not schedule or schedule.paused == 1 or schedule.revision ~= revision
        or schedule.last ~= previous then
        return 1
    elseif instant > NOW then
        return 2
    end
    schedule.last = instant
    put('HSET', SCHEDULES, id, packed_schedule(schedule))
    return 0
end

local at = 2
while at <= #ARGV do
    local answer = pass_tick(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
    local next_at = at + 5 + tonumber(ARGV[at + 4]) * WIDTH
    if answer == 0 and next_at > at + 5 then
        jobs[#jobs + 1] = { at + 5, next_at - 1 }
    end
    answers[#answers + 1] = answer
    at = next_at
end
store_groups(jobs)
flush()
return answers
