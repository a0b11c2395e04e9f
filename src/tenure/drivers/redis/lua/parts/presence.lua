-- forget_workers(): drops workers whose report has run out, some at a time. Shared by report, which
-- so bounds their number, and prune, which comes also where no worker is left.

local WORKERS, WORKER_ENDS = base .. 'workers', base .. 'worker_ends'

local function forget_workers()
    local past = call('ZRANGEBYSCORE', WORKER_ENDS, '-inf', NOW_TEXT, 'LIMIT', 0, 100)
    if #past > 0 then
        call('ZREM', WORKER_ENDS, unpack(past))
        call('HDEL', WORKERS, unpack(past))
    end
end
