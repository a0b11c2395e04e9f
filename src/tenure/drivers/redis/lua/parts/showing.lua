-- shown(ids, packed, with_extras): jobs as records.py reads them. Shared by whatever gives out jobs.
-- `with_extras` has the positions of those with error, result or progress.
-- Out: now, ids, packed marks, blobs, and for jobs with extras {position, error, result, progress}.

local function shown(ids, packed, with_extras)
    local extras = {}
    for n, i in ipairs(with_extras) do
        local id = ids[i]
        extras[n] = {
            i, call('HGET', ERRORS, id), call('HGET', RESULTS, id), call('HGET', PROGRESS, id)
        }
    end
    return { NOW_TEXT, ids, packed, read_all(JOBS, ids), extras }
end
