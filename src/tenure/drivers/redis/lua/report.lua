-- Shows a worker for a while, and drops those whose report has run out.
-- In: id, info, for how long. Out: nothing.
-- uses: store

local WORKERS, ENDS = base .. 'workers', base .. 'worker_ends'
local past = call('ZRANGEBYSCORE', ENDS, '-inf', NOW_TEXT, 'LIMIT', 0, 100)
if #past > 0 then
    call('ZREM', ENDS, unpack(past))
    call('HDEL', WORKERS, unpack(past))
end
call('HSET', WORKERS, ARGV[2], ARGV[3])
call('ZADD', ENDS, int(NOW + tonumber(ARGV[4])), ARGV[2])
