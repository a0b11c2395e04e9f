"""The worker and the front in a storm: any call may fail, in any way, or take its time.

The clock is the test's own, so that a seed is a run that can be played again.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

import tenure
from tenure.errors import JobFailed, StoreUnavailable
from tenure.testing.faults import Storm
from tests.runtime.scenes import errors_of, shut_down
from tests.runtime.world import World, open_world

T = TypeVar("T")

JOBS = 3  # of each kind
PATIENCE = 120  # seconds of the clock, in which all must have ended
SEEDS = [("memory", seed) for seed in range(20)] + [("sqlite", seed) for seed in range(100, 103)]


# How jobs of each kind end, and after how many starts.
ENDS = {"quick": "completed", "long": "completed", "second": "completed", "failing": "failed"}
STARTS = {"quick": 1, "long": 1, "second": 2, "failing": 3}


class Kinds:
    """A worker with the handlers, and what it told."""

    def __init__(self, world: World) -> None:
        self.events: list[tenure.Event] = []
        self.starts: Counter[str] = Counter()
        self._world = world
        self.worker = tenure.Worker(
            world.queue,
            concurrency=4,
            observers=[self.events.append],
        )
        retry = tenure.RetryPolicy(base=1.0, jitter=False, max_attempts=3)
        for name in ENDS:
            self.worker.register(name, getattr(self, name), retry=retry)

    async def quick(self, job_id: str) -> str:
        self.starts[job_id] += 1
        return job_id

    async def long(self, job_id: str) -> str:
        self.starts[job_id] += 1
        await self._world.clock.sleep(15.0)  # the keeper has its part
        return job_id

    async def second(self, job_id: str) -> str:
        self.starts[job_id] += 1
        if self.starts[job_id] < 2:
            raise ValueError("not yet")
        return job_id

    async def failing(self, job_id: str) -> None:
        self.starts[job_id] += 1
        raise ValueError("never")


async def insist(world: World, call: Callable[[], Awaitable[T]]) -> T:
    """Ask again until the store was reached, as a program would that must have an answer."""
    while True:
        try:
            return await world.run(call())
        except StoreUnavailable:
            pass


async def dispatched(world: World) -> dict[str, str]:
    """The kinds of the jobs, by their ids."""
    jobs = {f"{kind}-{number}": kind for kind in ENDS for number in range(JOBS)}
    for job_id, kind in jobs.items():
        await insist(world, partial(world.queue.dispatch, kind, job_id, id=job_id))
    return jobs


async def all_ended(world: World, jobs: int) -> None:
    for _ in range(PATIENCE):
        await world.advance(1.0)
        counts = await world.inner.counts(now=world.clock.now())
        if counts.completed + counts.failed == jobs:
            return
    raise AssertionError("not all have ended")


@pytest.mark.parametrize(("store", "seed"), SEEDS)
async def test_every_job_ends_once_and_none_is_lost(store: str, seed: int, tmp_path: Path) -> None:
    """I4, I5, I14: whatever was lost was asked for again, and nothing was done twice."""
    random.seed(seed)  # for the pauses between the worker's tries
    async with open_world(store, tmp_path, storm=Storm(seed)) as world:
        jobs = await dispatched(world)
        kinds = Kinds(world)
        began, calls = world.clock.monotonic(), len(world.driver.calls)
        handle = kinds.worker.run()
        await all_ended(world, len(jobs))
        passed = world.clock.monotonic() - began
        errors = errors_of(handle)
        last = await shut_down(world, handle, drain=10.0)
        errors += [*([last] if last else []), *errors_of(handle)]
        for job_id, kind in jobs.items():
            job = await world.inner.get(job_id)
            assert job is not None
            seen = job.state, job.attempt, kinds.starts[job_id], job.stalls
            assert seen == (ENDS[kind], STARTS[kind], STARTS[kind], 0)
        settled = Counter(e.hold for e in kinds.events if isinstance(e, tenure.JobSettled))
        assert set(settled.values()) == {1}
        unexpected = [e for e in errors if not isinstance(e, StoreUnavailable | JobFailed)]
        assert unexpected == []
        asked = Counter(world.driver.calls[calls:])
        # One for each job that ends or falls due, a poll a second, and as much again for failures.
        assert asked["claim"] + asked["exchange"] <= 2 * passed + 2 * kinds.starts.total()


# --- the front ----------------------------------------------------------------------------------

LOOKS = frozenset({"get", "list", "counts", "limits", "schedules"})


async def asked(world: World) -> list[object]:
    """What the front answers to one request after the other."""
    queue, run = world.queue, world.run
    one = await run(queue.dispatch("work", 1, id="one", unique="key"))
    two = await run(queue.dispatch("work", 2, unique="key"))
    many = await run(queue.dispatch_many([tenure.Call("work", n, id=f"n{n}") for n in range(3)]))
    await run(queue.pause("paused"))
    await run(queue.pause("resumed"))
    await run(queue.resume("resumed"))
    await run(queue.limit("api", per_second=3))
    await run(queue.limit("gone", concurrent=1))
    await run(queue.schedule("kept", "@daily", "work"))
    await run(queue.schedule("dropped", "@daily", "work"))
    await run(queue.pause_schedule("kept"))
    answers: list[object] = [
        two.id,
        [job.id for job in many],
        await run(queue.remove_limit("gone")),
        await run(queue.unschedule("dropped")),
        await run(queue.cancel(["n0", "n1"])) and None,  # which cannot tell whose doing it was
        await run(queue.retry(["n0", "one"])),
        await run(queue.move(["n0", "n1"], queue="elsewhere")),
        await run(queue.delete(["n1"])),
        await run(queue.cancel(one.id)) and None,
    ]
    counts = await queue.counts()
    answers += [counts.pending, counts.cancelled, counts.paused, counts.by_queue["elsewhere"]]
    answers += [limit.key for limit in await queue.limits()]
    answers += [(each.id, each.paused) for each in await queue.schedules()]
    return answers


@pytest.mark.parametrize(("store", "seed"), SEEDS)
async def test_whoever_asks_is_answered_as_if_no_answer_had_been_lost(
    store: str, seed: int, tmp_path: Path
) -> None:
    """I5, I14: the front repeats what may have been done, and reads the answers of its repeats."""
    random.seed(seed)
    calm = ["one", ["n0", "n1", "n2"], True, True, None, ["done", "live"]]
    async with open_world() as world:
        right = await asked(world)
        assert right[: len(calm)] == calm
    storm = Storm(seed, ways=("after", "ambiguously"), spares=Storm(0).spares | LOOKS)
    async with open_world(store, tmp_path, storm=storm) as world:
        assert await asked(world) == right
