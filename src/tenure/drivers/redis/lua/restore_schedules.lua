-- Stores schedules as they stood in another store, all or none.
-- In: id, definition, and what parts/book.lua keeps of it, for each.
-- Out: for each 0 stored, 1 known with the same definition, 2 with another one. With a 2 nothing was
--      changed.
-- uses: store, book

local answers, refused = {}, false
for i = 2, #ARGV, 3 do
    local known = read_schedule(ARGV[i])
    local answer = not known and 0 or known.definition == ARGV[i + 1] and 1 or 2
    refused = refused or answer == 2
    answers[#answers + 1] = answer
end
for n, answer in ipairs(answers) do
    if answer == 0 and not refused then
        put('HSET', SCHEDULES, ARGV[3 * n - 1], ARGV[3 * n + 1])
    end
end
flush()
return answers
