"""A01: a job whose claim was answered during a shutdown was thrown away, neither run nor returned.

The kind of fault: a job that is lost between its claim and its start. Here what a claim returns
after a shutdown was asked for is put back at once, with no attempt spent.

https://github.com/celery/celery/issues/4354
"""

import random
from collections import Counter

import tenure
from tests.regressions.beside import beside
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

LATENCY = 0.3
LEASE = 600.0  # so long that nothing is there by the end of one


async def test_a_claim_that_is_answered_during_a_shutdown_loses_nothing(
    open_site: Opening,
) -> None:
    """W7, W23, I5: 40 jobs and 10 shutdowns; 200 and 50 in the recipe, and a fifth of the wait."""
    chance = random.Random(1)
    async with open_site() as site:
        latency = LATENCY if site.still else LATENCY / 5
        starts: Counter[str] = Counter()

        async def work(job_id: str) -> None:
            starts[job_id] += 1

        ids = [f"job-{number}" for number in range(40)]
        await site.queue.dispatch_many([tenure.Call("work", each, id=each) for each in ids])
        for _ in range(10):
            queue, faults = await beside(site)
            faults.delay("claim", "exchange", seconds=latency, when="after")
            async with queue:
                watched = Watched(queue, {"concurrency": 4, "lease": LEASE, "poll_interval": 0.1})
                watched.register("work", work)
                handle = watched.worker.run()
                moment = site.clock.monotonic() + chance.uniform(0.0, 2 * latency)

                def passed(moment: float = moment) -> bool:
                    return site.clock.monotonic() >= moment

                await site.until_true(passed, lambda: "time stands still")
                await site.end(handle, 0.5)
                counts = await site.queue.counts()
                assert counts.processing == 0, "a job was neither run nor put back"
        last = site.worker(lease=LEASE)
        last.register("work", work)
        async with last.running():
            await site.until_state("completed", *ids)
            assert starts == Counter(ids)
            assert {(await site.queue.get(each)).attempt for each in ids} == {1}
            await standing_checks(site, last, ids=ids)
