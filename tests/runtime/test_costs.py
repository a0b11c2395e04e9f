"""What a job costs in calls of the store, in tasks, timers and turns of the loop; never in time.

These counts do not depend on the machine. A change that raises one has to say why.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.world import World, each_store, open_world

JOBS = 640
SLOTS = 64
BATCHES = JOBS // SLOTS


def counting(loop: asyncio.AbstractEventLoop) -> Counter[str]:
    """Count what is put on a loop from now on."""
    counts: Counter[str] = Counter()

    def count(what: str, verb: str) -> None:
        real: Callable[..., object] = getattr(loop, verb)

        def call(*arguments: object, **options: object) -> object:
            counts[what] += 1
            return real(*arguments, **options)

        setattr(loop, verb, call)

    count("tasks", "create_task")
    count("turns", "call_soon")
    count("timers", "call_at")
    return counts


async def drained(world: World, handler: Callable[..., Awaitable[None]]) -> Counter[str]:
    """The calls that the store got while a worker drained a queue."""
    worker = tenure.Worker(world.queue, concurrency=SLOTS)
    worker.register("work", handler)
    await world.queue.dispatch_many(tenure.Call("work", n) for n in range(JOBS))
    before = len(world.driver.calls)
    async with worker.run():
        await world.settle()
    calls = Counter(world.driver.calls[before:])
    assert (await world.queue.counts()).completed == JOBS
    return calls


@each_store
async def test_w16_a_full_queue_takes_one_round_trip_for_each_batch(
    store: str, tmp_path: Path
) -> None:
    """The outcomes of a batch and the claim of the next travel together."""

    async def nothing(payload: int) -> None:
        pass

    async with open_world(store, tmp_path) as world:
        calls = await drained(world, nothing)
        assert calls["exchange"] == BATCHES
        assert calls["claim"] <= 2  # the first, and one that finds nothing
        assert calls["record"] <= 1
        assert calls["progress"] == 0


def counted(jobs: int, *, wants_job: bool) -> Counter[str]:
    """What a drain of so many jobs puts on the loop."""
    loop = asyncio.new_event_loop()
    counts = counting(loop)

    async def plain(payload: int) -> None:
        pass

    async def curious(payload: int, job: tenure.RunningJob) -> None:
        pass

    async def drain() -> Counter[str]:
        left, last = jobs // SLOTS, asyncio.Event()

        async def exchange(call: Callable[[], Awaitable[Any]]) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                last.set()
            return await call()

        async with open_world() as world:
            worker = tenure.Worker(world.queue, concurrency=SLOTS)
            worker.register("work", curious if wants_job else plain)
            await world.queue.dispatch_many(tenure.Call("work", n) for n in range(jobs))
            async with worker.run():
                before = Counter(counts)
                world.driver.hooks["exchange"] = exchange
                await last.wait()
                return counts - before

    try:
        return loop.run_until_complete(drain())
    finally:
        loop.close()


@pytest.mark.parametrize("wants_job", [False, True])
def test_a_job_takes_one_task_one_turn_of_the_loop_and_no_timer(wants_job: bool) -> None:
    """The difference of two drains, so that what a worker does once is not in it."""
    few, many = counted(JOBS, wants_job=wants_job), counted(3 * JOBS, wants_job=wants_job)
    more = 2 * JOBS
    assert many["tasks"] - few["tasks"] == pytest.approx(more, rel=0.02)
    # The first step of its task, and what a batch of 64 takes.
    assert many["turns"] - few["turns"] <= 1.1 * more
    assert many["timers"] - few["timers"] <= 0.01 * more
