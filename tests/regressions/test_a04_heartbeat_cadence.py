"""A04: heartbeats were written about as seldom as the lease lasts, so live jobs were taken over.

The kind of fault: a heartbeat whose cadence leaves no room for a slow store. Here it comes three
times in a lease, so that one which takes a quarter of it comes in time.

https://github.com/janbjorge/pgqueuer/issues/430
"""

from collections import Counter

from tests.regressions.beside import beside
from tests.regressions.sites import LEASE, Opening
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

JOBS = 20


async def test_leases_are_kept_where_every_write_takes_a_quarter_of_one(
    open_site: Opening,
) -> None:
    """I6, W18: twenty jobs of three leases at once (two in real time), and an idle worker."""
    async with open_site() as site:
        queue, faults = await beside(site)
        faults.delay("claim", "record", "exchange", "extend", "keeper.extend", seconds=LEASE / 4)
        starts: Counter[str] = Counter()
        rounds = 3 if site.still else 2

        async def work(job_id: str) -> None:
            starts[job_id] += 1
            await site.clock.sleep(rounds * LEASE)

        async with queue:
            busy = Watched(queue, {"lease": LEASE, "poll_interval": 0.5, "concurrency": JOBS})
            idle = site.worker()
            busy.register("work", work)
            idle.register("work", work)
            ids = [f"job-{number}" for number in range(JOBS)]
            async with busy.running():
                for job_id in ids:
                    await site.queue.dispatch("work", job_id, id=job_id)
                await site.until_true(lambda: len(starts) == JOBS, lambda: f"{starts}")
                async with idle.running():
                    await site.until_state("completed", *ids)
                    assert starts == Counter(ids)
                    await standing_checks(site, idle, busy, ids=ids)
