-- Takes due jobs. In and out: parts/taking.lua, from ARGV[2] on.
-- uses: store, pieces, gathering
-- seldom: marks, places, limits, lanes, freeing, unique, meeting
-- uses: showing, taking

return take(2)
