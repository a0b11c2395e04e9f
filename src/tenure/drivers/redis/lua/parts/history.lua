-- remember(id, mark, how): adds the attempt that the current hold is to the history of its job, a list
-- of the newest 100, oldest first. `how` is what replies.py makes a PastAttempt of, as JSON, never
-- looked into here. Shared by record, exchange and reclaim. Puts writes, before the hold is ended.

local KEPT_ATTEMPTS = '-100'

local function remember(id, mark, how)
    local key = base .. 'history:' .. id
    local _, claimed, at = struct.unpack('>Bc0I8', mark[HELD])
    local worker = string.sub(mark[HELD], at)
    put('RPUSH', key, struct.pack(
        '>I4I4I8I8Hc0', mark[ATTEMPT], mark[SERIAL], claimed, NOW, #worker, worker
    ) .. how)
    put('LTRIM', key, KEPT_ATTEMPTS, '-1')
    if not has(mark, HAS_HISTORY) then
        mark[EXTRAS] = mark[EXTRAS] + HAS_HISTORY
    end
end
