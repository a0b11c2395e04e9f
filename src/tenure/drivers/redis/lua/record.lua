-- Settles holds. In and out: parts/settling.lua, from ARGV[2] on.
-- uses: store, pieces
-- seldom: marks, places, changing, limits, lanes, unique, history, outcomes
-- uses: settling

return (settle_all(2))
