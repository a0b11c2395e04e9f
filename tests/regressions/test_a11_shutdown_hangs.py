"""A11: a cancellation that landed as a side task took its first step was swallowed.

The kind of fault: a shutdown that waits for ever for a helper. Here it comes after any number of
turns of the event loop, and always ends, with nothing left.

https://github.com/procrastinate-org/procrastinate/pull/1616
"""

import asyncio

from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

TURNS = 50  # in place of milliseconds: every point between two steps of the worker's tasks


def working(site: Site) -> Watched:
    watched = site.worker()

    async def work(payload: object) -> None:
        await site.clock.sleep(0.05)

    watched.register("work", work)
    return watched


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_shutdown_ends_whatever_step_the_worker_is_at(open_site: Opening) -> None:
    """W23: with jobs to run and a schedule to fire, after 0 to 50 turns of the loop."""
    async with open_site() as site:
        await site.queue.schedule("s", "@every 1s", "work")
        ids = [(await site.queue.dispatch("work")).id for _ in range(5)]
        for count in range(TURNS + 1):
            handle = working(site).worker.run()
            await turns(count)
            await site.end(handle, 0.0)
            assert not handle.running
        await site.queue.pause_schedule("s")
        await ends_well(site, ids)


async def test_a_worker_whose_host_gives_up_waiting_ends_too(open_site: Opening) -> None:
    """W13, W23, W24: the task that runs it is cancelled at any step."""
    async with open_site() as site:
        ids = [(await site.queue.dispatch("work")).id for _ in range(5)]

        async def host() -> None:
            async with working(site).worker.run() as handle:
                await handle.wait()

        for count in range(TURNS + 1):
            task = asyncio.ensure_future(host())
            await turns(count)
            task.cancel()
            await site.until_true(task.done, lambda: "it hangs", seconds=30.0)
            assert task.cancelled() or task.exception() is None
        await ends_well(site, ids)


async def ends_well(site: Site, ids: list[str]) -> None:
    watched = working(site)
    async with watched.running():
        await site.until_state("completed", *ids)

        async def all_done() -> bool:
            counts = await site.queue.counts()
            return counts.pending + counts.scheduled + counts.processing == 0

        await site.until(all_done, lambda: "something is left")
        stored = [job.id for job in (await site.queue.list(limit=1000)).jobs]
        assert set(ids) <= set(stored)
        await standing_checks(site, watched, ids=stored)
