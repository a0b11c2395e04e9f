-- Stores schedules. In: id, revision, definition for each. Out: nothing.
-- One with the same definition stays as it is; with another one its ticks are those after now.
-- uses: store, book

for i = 2, #ARGV, 3 do
    local id, known = ARGV[i], read_schedule(ARGV[i])
    if not known or known.definition ~= ARGV[i + 2] then
        call('HSET', SCHEDULES, id, packed_schedule({
            paused = known and known.paused or 0, created = NOW, last = NOW,
            revision = ARGV[i + 1], definition = ARGV[i + 2],
        }))
    end
end
