-- The workers whose report has not run out. In: nothing. Out: their infos.
-- uses: store

local ids = call('ZRANGEBYSCORE', base .. 'worker_ends', '(' .. NOW_TEXT, '+inf', 'LIMIT', 0, 4000)
return #ids > 0 and call('HMGET', base .. 'workers', unpack(ids)) or {}
