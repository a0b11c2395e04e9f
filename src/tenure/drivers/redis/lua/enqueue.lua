-- Stores new jobs, group by group; of each group all or none.
-- In: how many groups; for each how many jobs, and these as parts/given.lua has them.
-- Out: one answer a job, over all groups, as parts/storing.lua gives them.
-- Why groups: calls that arrive together share one round trip, and are answered each by itself.
-- uses: store, pieces, given
-- seldom: marks, places, limits, lanes, unique, keyed
-- uses: storing

local groups, at = {}, 3
for _ = 1, tonumber(ARGV[2]) do
    local last = at + WIDTH * tonumber(ARGV[at])
    groups[#groups + 1] = { at + 1, last }
    at = last + 1
end
local answers = store_groups(groups)
flush()
return answers
