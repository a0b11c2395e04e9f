-- Settles holds. In and out: parts/settling.lua, from ARGV[2] on.
-- uses: store, marks, places, changing, limits, lanes, unique, history, settling

return (settle_all(2))
