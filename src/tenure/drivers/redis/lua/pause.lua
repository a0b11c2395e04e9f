-- Pauses or resumes a queue. In: its name, 1 or 0. Out: nothing.
-- uses: store

if ARGV[3] == '1' then
    call('SADD', PAUSED, ARGV[2])
elseif call('SREM', PAUSED, ARGV[2]) == 1 then
    wake(ARGV[2])
    flush()
end
