"""A39: a very short job of a schedule ran several times per tick, once on each of several workers.

The kind of fault: a tick that is told from others by the life of its job. Here the last tick is the
schedule's own, compared and set together with the making of the job. (Processes with clocks apart,
one of which is killed in a tick: tests/process/test_schedules.py.)

https://github.com/python-arq/arq/issues/196
"""

from collections import Counter
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from itertools import pairwise

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

WORKERS = 5


async def test_five_workers_fire_each_tick_once(open_site: Opening) -> None:
    """I13: with nothing kept of the finished jobs. 30 ticks in the recipe."""
    async with open_site() as site:
        wanted = 6 if site.still else 2
        fired: list[datetime] = []
        ran: Counter[str] = Counter()

        def observe(event: tenure.Event) -> None:
            if isinstance(event, tenure.ScheduleFired):
                fired.append(event.instant)

        async def work(payload: object, job: tenure.RunningJob) -> None:
            ran[job.headers["tick"]] += 1

        kept = tenure.Retention(completed=0.0)
        workers = [
            site.worker(observers=[observe], retention=kept, poll_interval=0.5 + number / 100)
            for number in range(WORKERS)
        ]
        for watched in workers:
            watched.register("work", work)
        await site.queue.schedule("s", "@every 1s", "work")
        async with AsyncExitStack() as stack:
            for watched in workers:
                await stack.enter_async_context(watched.running())
            await site.until_true(
                lambda: len(ran) >= wanted, lambda: f"{len(ran)} ticks", seconds=60.0
            )
            await site.queue.pause_schedule("s")

            async def all_done() -> bool:
                counts = await site.queue.counts()
                return counts.pending + counts.processing == 0 and len(ran) == len(fired)

            await site.until(all_done, lambda: f"{len(fired)} fired, {len(ran)} ran")
            assert set(ran.values()) == {1}
            instants = sorted(fired)
            assert {b - a for a, b in pairwise(instants)} == {timedelta(seconds=1)}
            stored = [job.id for job in (await site.queue.list(limit=100)).jobs]
            await standing_checks(site, *workers, ids=stored)
