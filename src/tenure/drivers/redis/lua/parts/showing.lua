-- shown(ids, packed, marks): jobs as records.py reads them. Shared by whatever gives out jobs.
-- Out: now, ids, packed marks, blobs, and for jobs with extras {position, error, result, progress}.

local function shown(ids, packed, marks)
    local blobs, extras = {}, {}
    for from = 1, #ids, CHUNK do
        local found = call('HMGET', JOBS, unpack(ids, from, math.min(from + CHUNK - 1, #ids)))
        for i = 1, #found do
            blobs[from + i - 1] = found[i]
        end
    end
    for i, id in ipairs(ids) do
        if marks[i][EXTRAS] % 8 ~= 0 then
            extras[#extras + 1] = {
                i, call('HGET', ERRORS, id), call('HGET', RESULTS, id), call('HGET', PROGRESS, id)
            }
        end
    end
    return { NOW_TEXT, ids, packed, blobs, extras }
end
