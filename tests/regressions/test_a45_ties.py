"""A45: jobs due at the same instant ran in the text order of their ids.

The kind of fault: ties broken by a name. Jobs with one priority and one due time run in the order
in which they were dispatched, however they were dispatched, and whoever had them in between.

https://github.com/OptimalBits/bull/issues/183
"""

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

import tenure
from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

JOBS = 25

# `job-10` is before `job-2` as text, and neither is before the other by its number here.
IDS = [f"job-{number}" for number in random.Random(45).sample(range(1, JOBS + 1), JOBS)]

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "equal priorities": {"priority": 5},
    "low priorities": {"priority": -100},
    "unique keys": {},
    "one by one": {},
}


def working(site: Site, **options: Any) -> tuple[Watched, list[str]]:
    """A worker that runs one job at a time, and the ids in the order of their starts."""
    watched = site.worker(concurrency=1, **options)
    started: list[str] = []

    async def work(payload: object, job: tenure.RunningJob) -> None:
        started.append(job.id)

    watched.register("work", work)
    return watched, started


async def dispatch(site: Site, way: str, ids: Sequence[str], **due: Any) -> None:
    calls = [
        tenure.Call(
            "work",
            id=job_id,
            unique=f"key of {job_id}" if way == "unique keys" else None,
            **WAYS[way],
            **due,
        )
        for job_id in ids
    ]
    for chunk in [[call] for call in calls] if way == "one by one" else [calls]:
        await site.queue.dispatch_many(chunk)


async def due_times(site: Site) -> int:
    return len({(await site.queue.get(job_id)).run_at for job_id in IDS})


@pytest.mark.parametrize("way", list(WAYS))
async def test_jobs_due_at_one_instant_run_in_the_order_of_their_dispatch(
    open_site: Opening, way: str
) -> None:
    async with open_site() as site:
        await dispatch(site, way, IDS, at=site.clock.now() - timedelta(seconds=5))
        assert await due_times(site) == 1
        watched, started = working(site)
        async with watched.running():
            await site.until_state("completed", *IDS)
            assert started == IDS
            await standing_checks(site, watched, ids=IDS)


async def test_so_do_jobs_whose_instant_comes_while_a_worker_waits_for_it(
    open_site: Opening,
) -> None:
    async with open_site() as site:
        watched, started = working(site)
        async with watched.running():
            await dispatch(site, "plain", IDS, at=site.clock.now() + timedelta(seconds=1))
            assert await due_times(site) == 1
            await site.until_state("completed", *IDS)
            assert started == IDS
            await standing_checks(site, watched, ids=IDS)


async def test_priorities_come_first_and_ties_keep_their_order_within_each(
    open_site: Opening,
) -> None:
    async with open_site() as site:
        due = site.clock.now() - timedelta(seconds=5)
        priorities = {job_id: index % 3 for index, job_id in enumerate(IDS)}
        calls = [tenure.Call("work", id=i, priority=priorities[i], at=due) for i in IDS]
        await site.queue.dispatch_many(calls)
        watched, started = working(site)
        async with watched.running():
            await site.until_state("completed", *IDS)
            assert started == sorted(IDS, key=lambda job_id: -priorities[job_id])
            await standing_checks(site, watched, ids=IDS)


@pytest.mark.parametrize("prefetch", [0, 6])
async def test_jobs_put_back_by_a_shutdown_keep_their_places(
    open_site: Opening, prefetch: int
) -> None:
    """The one that ran and those that were claimed ahead of time: before all others."""
    async with open_site() as site:
        await dispatch(site, "plain", IDS, at=site.clock.now() - timedelta(seconds=5))
        leaving = site.worker(concurrency=1, prefetch=prefetch)
        first: list[str] = []

        async def wait(payload: object, job: tenure.RunningJob) -> None:
            first.append(job.id)
            if len(first) == 3:
                await asyncio.Event().wait()

        leaving.register("work", wait)
        async with leaving.running() as handle:

            async def held() -> bool:
                processing = (await site.queue.counts()).processing
                return len(first) == 3 and processing == 1 + prefetch

            await site.until(held, lambda: f"{first}")
            assert await site.end(handle, 0.0) is None
        assert first == IDS[:3]
        assert (await site.queue.counts()).pending == JOBS - 2
        watched, started = working(site)
        async with watched.running():
            await site.until_state("completed", *IDS)
            assert started == IDS[2:]
            assert {(await site.queue.get(job_id)).attempt for job_id in IDS} == {1}
            await standing_checks(site, watched, ids=IDS)
