-- Stores the progress of a running attempt. In: id, serial, token, value.
-- Out: 0 applied, 2 fenced, 3 unknown, as record.
-- uses: store, marks, places, changing

local id, mark = ARGV[2], read_mark(ARGV[2])
if not mark then
    return 3
elseif not held_by(mark, tonumber(ARGV[3]), ARGV[4]) then
    return 2
end
put_extra(PROGRESS, HAS_PROGRESS, id, mark, ARGV[5])
put_mark(id, mark)
flush()
return 0
