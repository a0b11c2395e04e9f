"""A15: an exception outside the ordinary tree left the worker in an invalid state and stopped it.

The kind of fault: what a handler throws is taken for something that happened to the worker. Here
it ends the attempt, whatever it is.

https://github.com/procrastinate-org/procrastinate/issues/871
"""

import asyncio
from collections.abc import Callable

from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks


class Outside(BaseException):
    """Of a user's own, outside `Exception`."""


def recurse() -> BaseException:
    return recurse()


# What makes each of them, and the error that tells of it.
RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "CancelledError": (asyncio.CancelledError, "JobFailed"),
    "KeyboardInterrupt": (KeyboardInterrupt, "JobPanicked"),
    "SystemExit": (lambda: SystemExit(3), "JobPanicked"),
    "GeneratorExit": (GeneratorExit, "JobPanicked"),
    "StopIteration": (StopIteration, "JobFailed"),
    "RecursionError": (recurse, "JobFailed"),
    "Outside": (lambda: Outside("mine"), "JobPanicked"),
}


async def of_a_coroutine(payload: str) -> None:
    raise RAISED[payload][0]()


def of_a_thread(payload: str) -> None:
    raise RAISED[payload][0]()


async def test_whatever_a_handler_raises_ends_its_attempt_and_not_the_worker(
    open_site: Opening,
) -> None:
    """W13: one slot, that is free again each time; one error for each; none is a shutdown."""
    async with open_site() as site:
        watched = site.worker(concurrency=1)
        watched.register("coroutine", of_a_coroutine)
        watched.register("thread", of_a_thread)
        swallowed: dict[str, int] = {}
        ids: list[str] = []
        async with watched.running() as handle:
            for name in ("coroutine", "thread"):
                for raised, (_, told) in RAISED.items():
                    job = await site.queue.dispatch(name, raised)
                    ids.append(job.id)
                    swallowed[told] = swallowed.get(told, 0) + 1
            await site.until_state("failed", *ids)
            attempts = {(await site.queue.get(job_id)).attempt for job_id in ids}
            assert attempts == {1}
            assert handle.running
            assert handle.healthy
            await standing_checks(site, watched, ids=ids, swallowed=swallowed)
