-- The workers whose report has not run out. In: nothing. Out: their infos.
-- uses: store, presence

local ids = call('ZRANGEBYSCORE', WORKER_ENDS, '(' .. NOW_TEXT, '+inf', 'LIMIT', 0, 4000)
return #ids > 0 and call('HMGET', WORKERS, unpack(ids)) or {}
