-- Shows a worker for a while, and drops those whose report has run out.
-- In: id, info, for how long. Out: nothing.
-- uses: store, presence

forget_workers()
call('HSET', WORKERS, ARGV[2], ARGV[3])
call('ZADD', WORKER_ENDS, int(NOW + tonumber(ARGV[4])), ARGV[2])
