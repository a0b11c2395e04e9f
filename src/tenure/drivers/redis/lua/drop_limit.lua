-- Removes a limit. In: key. Out: 1 if there was one, else 0. As put_limit.lua does with who waits.
-- uses: store, limits, lanes, freeing

if call('HDEL', DEFINITIONS, ARGV[2]) == 0 then
    return 0
end
limit_changed(ARGV[2])
flush()
return 1
