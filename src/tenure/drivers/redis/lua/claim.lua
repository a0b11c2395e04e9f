-- Takes due jobs. In and out: parts/taking.lua, from ARGV[2] on.
-- uses: store, marks, places, limits, lanes, freeing, unique, showing, taking

return take(2)
