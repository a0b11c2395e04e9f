"""The standing checks of FAULTS.md: what holds after every recipe, whatever it was about.

1. The counts add up; no id comes twice, none is missing.
2. Nothing is processing without a live lease, and nothing at all once the handlers have ended.
3. A job dispatched at the end, the canary, is done.
4. Whatever was swallowed shows in `next_error()`, which stays within its bound.
5. `shutdown()` returns within its drain and a second, and leaves no task of the worker.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import tenure
from tests.process.stage import Stage
from tests.regressions.sites import LEASE, Site, live_site
from tests.regressions.watched import CANARY, Watched

__all__ = ["Told", "standing_checks", "standing_checks_of_stage"]

_BUFFER = 256
Told = int | range
_NOTHING: Mapping[str, Told] = {}


async def standing_checks(
    site: Site,
    *workers: Watched,
    ids: Iterable[str],
    swallowed: Mapping[str, Told] = _NOTHING,
    drain: float = 0.0,
) -> None:
    """Check all five, on workers that run and whose handlers have ended; they are shut down.

    `ids` are all jobs that the store must have, `swallowed` the errors to be told, by type: how
    many, or a range where that is for the store and the machine to say. No other may be told.
    """
    canary = await site.queue.dispatch(CANARY, queue=workers[0].serves)
    await site.until_state("completed", canary.id)
    await _nothing_is_left_processing(site)
    await _the_counts_add_up(site, [*ids, canary.id])
    told = [await _ends_in_order(site, watched, drain) for watched in workers]
    # One that is held up by its store when the time is over has been cancelled, and ends with it.
    await site.until_true(
        lambda: not _worker_tasks(), lambda: f"left in the loop: {_worker_tasks()}", seconds=1.0
    )
    errors = sum(told, Counter[str]())
    errors.pop("LoopBlocked", None)  # that the machine is slow is no fault
    _are_told(errors, swallowed)
    await _the_counts_add_up(site, [*ids, canary.id])


def standing_checks_of_stage(stage: Stage, ids: Iterable[str]) -> None:
    """Check all five by a worker from here, once the programs of the stage have ended."""

    async def check() -> None:
        async with live_site(stage.url) as site:
            watched = site.worker()
            async with watched.running():
                await standing_checks(site, watched, ids=ids)

    asyncio.run(check())


def _are_told(errors: Counter[str], swallowed: Mapping[str, Told]) -> None:
    for kind in errors.keys() | swallowed.keys():
        told = swallowed.get(kind, 0)
        expected = told if isinstance(told, range) else range(told, told + 1)
        assert errors[kind] in expected, f"{kind}: {errors[kind]} of {errors} instead of {told}"


async def _nothing_is_left_processing(site: Site) -> None:
    driver = await site.driver()
    left = 0

    async def done() -> bool:
        nonlocal left
        left = (await site.queue.counts()).processing
        return left == 0 and not (await driver.expired(1)).holds

    await site.until(done, lambda: f"{left} are processing", seconds=2 * LEASE)


async def _the_counts_add_up(site: Site, ids: list[str]) -> None:
    jobs = await _all_jobs(site.queue)
    assert Counter(job.id for job in jobs) == Counter(ids)
    counts = await site.queue.counts()
    states = Counter(str(job.state) for job in jobs)
    assert not counts.capped
    assert states == Counter(
        pending=counts.pending + counts.scheduled,
        blocked=counts.blocked,
        processing=counts.processing,
        completed=counts.completed,
        failed=counts.failed,
        cancelled=counts.cancelled,
    )


async def _all_jobs(queue: tenure.Queue) -> list[tenure.Job[Any]]:
    page = await queue.list(limit=1000)
    jobs = list(page.jobs)
    while page.cursor is not None:
        page = await queue.list(limit=1000, cursor=page.cursor)
        jobs += page.jobs
    return jobs


async def _ends_in_order(site: Site, watched: Watched, drain: float) -> Counter[str]:
    """Shut down; the errors that were told, by type, those that were dropped with them."""
    handle = watched.handle
    first = await site.end(handle, drain)
    errors = [] if first is None else [first]
    while (error := await handle.next_error()) is not None:
        errors.append(error)
    assert watched.untold == {}
    assert len(errors) <= _BUFFER
    assert handle.dropped_errors == watched.dropped
    assert len(errors) + handle.dropped_errors == watched.reported.total()
    return watched.reported


def _worker_tasks() -> list[asyncio.Task[Any]]:
    """The tasks on the loop whose code is the runtime's."""
    found: list[asyncio.Task[Any]] = []
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "cr_code", None)
        if code is not None and "/tenure/_runtime/" in code.co_filename:
            found.append(task)
    return found
