-- Deletes jobs that match and are not processing, oldest arrival first.
-- In: the seq after which to look, how many to look at, how many to delete at most, then state,
--     queue and name ('' for any).
-- Out: how many, and the seq to go on after ('' at the end). Bounded; the caller goes on.
-- uses: store, marks, places, changing, limits, lanes, unique, removing

local after, most, limit = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local state, queue, name = ARGV[5], ARGV[6], ARGV[7]
local ids = call('ZRANGEBYSCORE', ARRIVALS, '(' .. after, '+inf', 'LIMIT', 0, most)
local marks, deleted, seen = read_marks(ids), 0, 0
for n, id in ipairs(ids) do
    if deleted >= limit then
        break
    end
    local mark = marks[n]
    seen = n
    if mark and mark[STATE] ~= PROCESSING and (state == '' or mark[STATE] == tonumber(state))
        and (queue == '' or mark[QUEUE] == queue) and (name == '' or mark[NAME] == name) then
        remove(id, mark)
        deleted = deleted + 1
    end
end
local going_on = ''
if seen < #ids or #ids == most then
    going_on = seen > 0 and int(tonumber(call('ZSCORE', ARRIVALS, ids[seen]))) or after
end
flush()
forget(2 * deleted)
return { deleted, going_on }
