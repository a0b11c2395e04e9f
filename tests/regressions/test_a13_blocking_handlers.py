"""A13: a time limit could not interrupt a blocking call, so that slots went until nothing ran.

The kind of fault: a handler in a thread that nobody can stop. Here it keeps its slot and its lease,
is reported as overdue once, and its own result counts. (That a process can be killed instead of it
waits for handlers in processes.)

https://github.com/Bogdanp/dramatiq/issues/211
"""

import threading
from collections.abc import Sequence
from functools import partial

import pytest

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

SLOTS = 4
JOBS = 2 * SLOTS  # of each kind
LIMIT = 1.0
PATIENCE = 20.0  # seconds that a thread waits for the test before it gives up


class Blocking:
    """A handler that blocks its thread until its round of jobs is let go."""

    def __init__(self) -> None:
        self.rounds = [threading.Event() for _ in range(JOBS // SLOTS)]
        self.started = 0

    def __call__(self, number: int, job: tenure.RunningJob) -> str:
        self.started += 1
        assert self.rounds[number // SLOTS].wait(PATIENCE)
        return f"{number} in attempt {job.attempt}"


def told(overdue: Sequence[float], count: int) -> bool:
    return len(overdue) == count


async def quick(payload: object) -> None:
    return None


async def test_threads_that_block_past_their_limit_are_waited_for_and_others_run_after_them(
    open_site: Opening,
) -> None:
    """W12: each is told of once, at about its limit, and its own result counts."""
    async with open_site() as site:
        overdue: list[float] = []

        def observe(event: tenure.Event) -> None:
            if isinstance(event, tenure.ErrorReported) and isinstance(
                event.error, tenure.JobOverdue
            ):
                overdue.append(event.error.seconds)

        watched = site.worker(concurrency=SLOTS, overdue_grace=60.0, observers=[observe])
        blocking = Blocking()
        watched.register("block", blocking, timeout=LIMIT)
        watched.register("quick", quick)
        async with watched.running():
            calls = [tenure.Call("block", number) for number in range(JOBS)]
            calls += [tenure.Call("quick")] * JOBS
            jobs = await site.queue.dispatch_many(calls)
            for turn, gate in enumerate(blocking.rounds, 1):
                so_many = partial(told, overdue, turn * SLOTS)
                await site.until_true(so_many, lambda: f"overdue: {overdue}")
                gate.set()
            ids = [job.id for job in jobs]
            await site.until_state("completed", *ids)
            if site.still:
                assert overdue == pytest.approx([LIMIT] * JOBS, abs=0.1)
            results = [(await site.queue.get(job_id)).result for job_id in ids[:JOBS]]
            assert results == [f"{number} in attempt 1" for number in range(JOBS)]
            await standing_checks(site, watched, ids=ids, swallowed={"JobOverdue": JOBS})


async def test_threads_that_block_hold_up_no_shutdown_and_change_nothing_later(
    open_site: Opening,
) -> None:
    """W12, W23: the bound holds; their jobs are run again, and the first results are refused."""
    async with open_site() as site:
        watched, heir = site.worker(concurrency=SLOTS), site.worker()
        first, second = Blocking(), Blocking()
        second.rounds[0].set()
        watched.register("block", first, timeout=LIMIT)
        heir.register("block", second)
        calls = [tenure.Call("block", number) for number in range(SLOTS)]
        async with watched.running() as handle:
            jobs = await site.queue.dispatch_many(calls)
            await site.until_true(lambda: first.started == SLOTS, lambda: f"{first.started}")
            await site.end(handle, 0.0)
        async with heir.running():
            ids = [job.id for job in jobs]
            await site.until_state("completed", *ids)
            first.rounds[0].set()
            await standing_checks(site, heir, ids=ids)
            results = [(await site.queue.get(job_id)).result for job_id in ids]
            assert results == [f"{number} in attempt 2" for number in range(SLOTS)]
