-- Pauses or resumes a schedule. In: id, 1 or 0. Out: 1, or 0 where there is none.
-- What fell into a pause is over when it ends.
-- uses: store, book

local schedule, paused = read_schedule(ARGV[2]), tonumber(ARGV[3])
if not schedule then
    return 0
elseif schedule.paused ~= paused then
    schedule.paused = paused
    schedule.last = paused == 1 and schedule.last or math.max(schedule.last, NOW)
    call('HSET', SCHEDULES, ARGV[2], packed_schedule(schedule))
end
return 1
