-- Settles holds, then takes due jobs, in one step.
-- In: as parts/settling.lua from ARGV[2] on, then as parts/taking.lua.
-- Out: the answers, then what the claim gives, or the text of its error: outcomes that are written
-- are not undone by a claim that fails.
-- uses: store, pieces, gathering
-- seldom: marks, places, changing, limits, lanes, freeing, unique, history, outcomes, meeting
-- uses: settling, showing, taking

local answers, at = settle_all(2)
local ok, taken = pcall(take, at)
if not ok then
    taken = type(taken) == 'table' and taken.err or tostring(taken)
end
return { answers, taken }
