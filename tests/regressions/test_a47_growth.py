"""A47: finished jobs were removed under another key than they were kept under, so memory grew.

The kind of fault: books that a process keeps of every job it ever saw. One worker runs twenty
thousand jobs, a tenth of which fail, nobody reads its errors; what it holds of them is bounded.

https://github.com/chrisguidry/docket/pull/309
"""

import asyncio
import gc
import logging
import tracemalloc
from collections.abc import Iterator
from typing import NoReturn

import pytest

import tenure
from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks

pytestmark = pytest.mark.slow

JOBS = 20_000
SETTLED = 5_000  # jobs until everything has reached its size
CHUNK = 1_000
CONCURRENCY = 16
GROWTH = 2_000_000  # bytes
BUFFER = 256


@pytest.fixture(autouse=True)
def nothing_logged() -> Iterator[None]:
    """What pytest keeps of the log would grow with it."""
    logger = logging.getLogger("tenure")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


class Mill:
    """A worker that is fed by the chunk, and what it held meanwhile."""

    def __init__(self, site: Site) -> None:
        # Finished jobs go as early as may be, so that a store in this process stays small as well.
        kept = tenure.Retention(completed=0.0, failed=0.0)
        self.site = site
        self.watched = site.worker(
            concurrency=CONCURRENCY, retention=kept, lease=30.0, poll_interval=30.0
        )
        self.watched.register("work", self._work)
        self.seen = bytearray(JOBS)
        self.most_tasks = 0
        self.traced: dict[int, int] = {}

    async def _work(self, number: int) -> None:
        self.seen[number] += 1
        if number % 100 == 0:
            self.most_tasks = max(self.most_tasks, len(asyncio.all_tasks()))
        if number % 10 == 0:
            fail(number)

    async def feed(self, begin: int) -> None:
        """One chunk, until it is done and, where the clock can be moved, pruned."""
        numbers = range(begin, begin + CHUNK)
        await self.site.queue.dispatch_many(
            [tenure.Call("work", number, id=f"a47-{number}") for number in numbers]
        )

        async def done() -> bool:
            counts = await self.site.queue.counts()
            return counts.pending + counts.processing == 0

        await self.site.until(done, lambda: f"of {begin} and on", seconds=120.0)
        await self.site.skip(130.0)  # a minute and the longest pause of the pruning
        if begin + CHUNK in (SETTLED, JOBS):
            gc.collect()
            self.traced[begin + CHUNK] = tracemalloc.get_traced_memory()[0]


def fail(number: int) -> NoReturn:
    raise ValueError(f"no {number}")


@pytest.mark.usefixtures("traced")
def test_what_a_worker_holds_does_not_grow_with_the_jobs_it_has_run(open_site: Opening) -> None:
    """Memory, tasks, and errors that nobody reads: 256, and a count of the others."""

    async def run() -> None:
        async with open_site() as site:
            mill = Mill(site)
            async with mill.watched.running() as handle:
                for begin in range(0, JOBS, CHUNK):
                    await mill.feed(begin)
                assert mill.seen == bytearray([1]) * JOBS
                assert mill.traced[JOBS] - mill.traced[SETTLED] < GROWTH, mill.traced
                assert 0 < mill.most_tasks < 3 * CONCURRENCY
                assert handle.dropped_errors == JOBS // 10 - BUFFER
                left = [] if site.still else [f"a47-{number}" for number in range(JOBS)]
                await standing_checks(
                    site, mill.watched, ids=left, swallowed={"JobFailed": JOBS // 10}
                )

    asyncio.run(run())
