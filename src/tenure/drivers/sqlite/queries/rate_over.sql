-- When the rate of a key is over for which a lane of a queue is parked: the earliest after now.
-- In: queue, now. Out: an instant, or no row.
SELECT h.free_at
FROM tenure_holds AS h INDEXED BY tenure_holds_free
WHERE h.free_at > ?2 AND EXISTS (
    SELECT 1 FROM tenure_lanes AS l INDEXED BY tenure_lanes_parked
    WHERE l.parked = h.key AND l.queue = ?1
)
ORDER BY h.free_at
LIMIT 1;
