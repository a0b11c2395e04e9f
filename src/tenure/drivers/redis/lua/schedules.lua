-- All schedules. In: nothing. Out: now; then, flat, each id with what parts/book.lua keeps.
-- uses: store, book

return { NOW_TEXT, call('HGETALL', SCHEDULES) }
