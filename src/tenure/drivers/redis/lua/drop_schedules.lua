-- Removes schedules. In: ids. Out: for each 1 if it was there, else 0.
-- uses: store, book

local answers = {}
for i = 2, #ARGV do
    answers[#answers + 1] = call('HDEL', SCHEDULES, ARGV[i])
end
return answers
