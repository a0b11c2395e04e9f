"""A46: while the first queue of the list was never empty, the others were never served.

The kind of fault: starvation. Queues share a worker by default; who asks for a strict order, or
gives priorities within a queue, can see for how long the others have been waiting.

https://github.com/film42/sidekiq-rs/pull/56
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

import tenure
from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

LEAST = 100  # jobs that always wait in `hi`
LOW = 10
TAKES = 0.02  # seconds, a job


class Crowd:
    """A worker on `hi` and `lo`, and a producer that never lets `hi` run empty."""

    def __init__(self, site: Site, **options: Any) -> None:
        self.site = site
        self.watched: Watched = site.worker(
            concurrency=4, **{"queues": ["hi", "lo"], "observers": [self._see], **options}
        )
        self.watched.register("work", self._work)
        self.ids: list[str] = []
        self.started = Counter[str]()
        self.done = Counter[str]()
        self.least = 10 * LEAST  # of what waited in `hi` while it was to be crowded
        self._flow = False
        self._produced = 0

    @property
    def _backlog(self) -> int:
        return self._produced - self.started["hi"]

    async def dispatch(self, queue: str, count: int, **options: Any) -> list[str]:
        calls = [tenure.Call("work", queue=queue, **options) for _ in range(count)]
        ids = [job.id for job in await self.site.queue.dispatch_many(calls)]
        self.ids += ids
        return ids

    @asynccontextmanager
    async def crowding(self) -> AsyncGenerator[None]:
        """Keep `hi`, once filled, at a hundred and more during the body."""
        self._flow = True
        producer = asyncio.create_task(self._produce())
        try:
            yield
            self._flow = False
            await self.site.until_true(producer.done, lambda: "the producer goes on")
            producer.result()
        finally:
            producer.cancel()
            await asyncio.wait([producer])
        assert self.least >= LEAST, "the producer was too slow"

    async def _produce(self) -> None:
        while self._flow:
            await self.fill()
            await self.site.clock.sleep(TAKES)

    async def fill(self) -> None:
        """Let three hundred jobs and more wait in `hi`."""
        while self._backlog < 3 * LEAST:
            await self.dispatch("hi", LEAST, priority=5)
            self._produced += LEAST

    def _see(self, event: tenure.Event) -> None:
        match event:
            case tenure.JobStarted(job=job):
                self.started[job.queue] += 1
                if self._flow:
                    self.least = min(self.least, self._backlog)
            case tenure.JobSettled(job=job):
                self.done[job.queue] += 1
            case _:
                pass

    async def _work(self, payload: object) -> None:
        await self.site.clock.sleep(TAKES)


async def served(crowd: Crowd, queue: str, count: int, *, seconds: float = 30.0) -> None:
    await crowd.site.until_true(
        lambda: crowd.done[queue] >= count, lambda: f"done: {crowd.done}", seconds=seconds
    )


async def age_of_the_oldest(site: Site, ids: list[str]) -> timedelta:
    """For how long the one that is due longest has been waiting."""
    jobs = [await site.queue.get(job_id) for job_id in ids]
    assert {str(job.state) for job in jobs} == {"pending"}
    return site.clock.now() - min(job.run_at for job in jobs)


@pytest.mark.parametrize(
    ("queues", "weight"), [(["hi", "lo"], 1), ({"hi": 5, "lo": 1}, 5)], ids=["shares", "weights"]
)
async def test_by_default_a_queue_gets_its_share_whatever_waits_in_another(
    open_site: Opening, queues: Any, weight: int
) -> None:
    """Within ten seconds; also where the crowd was there long before."""
    async with open_site() as site:
        crowd = Crowd(site, queues=queues)
        await crowd.fill()
        async with crowd.watched.running():
            async with crowd.crowding():
                await served(crowd, "hi", LEAST)
                await crowd.dispatch("lo", LOW)
                before = crowd.started["hi"]
                await served(crowd, "lo", LOW, seconds=10.0)
                # As many in the meantime as its weight says, and what was claimed at both ends.
                assert crowd.started["hi"] - before <= weight * LOW + 4 * (weight + 2)
            await served(crowd, "hi", len(crowd.ids) - LOW)
            await standing_checks(site, crowd.watched, ids=crowd.ids)


async def test_in_strict_order_the_others_wait_and_it_can_be_seen_for_how_long(
    open_site: Opening,
) -> None:
    async with open_site() as site:
        crowd = Crowd(site, strict=True)
        low = await crowd.dispatch("lo", LOW)
        await crowd.fill()
        async with crowd.watched.running():
            async with crowd.crowding():
                begin = await age_of_the_oldest(site, low)
                await served(crowd, "hi", LEAST)
                assert crowd.started["lo"] == 0
                # A hundred jobs, four at a time.
                assert await age_of_the_oldest(site, low) - begin >= timedelta(seconds=25 * TAKES)
                assert (await site.queue.counts()).by_queue["lo"].pending == LOW
            await served(crowd, "lo", LOW)
            await served(crowd, "hi", len(crowd.ids) - LOW)
            await standing_checks(site, crowd.watched, ids=crowd.ids)


async def test_low_priorities_within_a_queue_wait_and_it_can_be_seen_for_how_long(
    open_site: Opening,
) -> None:
    async with open_site() as site:
        crowd = Crowd(site, queues=["hi"])
        low = await crowd.dispatch("hi", LOW, priority=-5)
        await crowd.fill()
        async with crowd.watched.running():
            async with crowd.crowding():
                begin = await age_of_the_oldest(site, low)
                await served(crowd, "hi", LEAST)
                assert await age_of_the_oldest(site, low) - begin >= timedelta(seconds=25 * TAKES)
            await served(crowd, "hi", len(crowd.ids))
            await standing_checks(site, crowd.watched, ids=crowd.ids)
