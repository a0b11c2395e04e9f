"""What a store does on this machine: dispatches, a drain, pick-ups. Believes no figure unchecked.

Everything happens in this process and on one event loop, so that a program of several does more.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from tenure.call import Call
from tenure.errors import StoreUnavailable
from tenure.events import Event, JobSettled
from tenure.outcomes import Completed
from tenure.queue import Queue
from tenure.worker import Worker

__all__ = ["Measure", "Mismatch", "bulk", "drain", "one_by_one", "pick_up"]

_ONE_BY_ONE = 3.0  # seconds
_SAMPLES = 100  # pick-ups
_WARM = 5  # that are not counted
_APART = 0.02  # seconds between two
_PATIENCE = 30.0  # seconds without any progress
_LOOK = 0.5

_NAME = "tenure.bench"
_PAYLOAD = {"to": "user@example.com", "subject": "welcome", "tries": 3, "tags": ["a", "b"]}


class Measure(Struct, frozen=True, kw_only=True):
    """One figure, and from how many jobs it was made."""

    name: str
    figure: float
    unit: str
    jobs: int


class Mismatch(Exception):
    """The store and the handlers do not agree on what was done, so there is no figure."""


async def one_by_one(queue: Queue, most: int, told: Callable[[int], None]) -> Measure:
    """Each dispatch waits for the one before."""
    clock = queue.clock
    began, jobs, now = clock.monotonic(), 0, 0.0
    while jobs < most and now < _ONE_BY_ONE:
        await queue.dispatch(_NAME, _PAYLOAD, queue="one-by-one")
        jobs += 1
        now = clock.monotonic() - began
        told(jobs)
    await _check(queue, "one-by-one", jobs, done=0)
    return Measure(name="dispatch, one by one", figure=jobs / now, unit="jobs/s", jobs=jobs)


async def bulk(queue: Queue, jobs: int, told: Callable[[int], None]) -> Measure:
    """All in one call, which stores them in large parts."""
    calls = [Call(_NAME, _PAYLOAD) for _ in range(jobs)]
    began = queue.clock.monotonic()
    await queue.dispatch_many(calls, progress=told)
    seconds = queue.clock.monotonic() - began
    await _check(queue, "default", jobs, done=0)
    return Measure(name="dispatch, in bulk", figure=jobs / seconds, unit="jobs/s", jobs=jobs)


async def drain(queue: Queue, jobs: int, slots: int, told: Callable[[int], None]) -> Measure:
    """Run the jobs of `bulk`, which do nothing: from the worker's start to the last outcome."""
    settled = _Settled(jobs)
    worker = _worker(queue, slots, settled)
    worker.register(_NAME, _nothing)
    began = queue.clock.monotonic()
    async with worker.run():
        before = -1
        while not await queue.clock.wait(settled.all, _LOOK):
            told(settled.number)
            if settled.number == before:
                await _look_for_progress(queue, settled)
            before = settled.number
        seconds = queue.clock.monotonic() - began
    await _check(queue, "default", jobs, done=jobs)
    return Measure(name=f"drain, {slots} slots", figure=jobs / seconds, unit="jobs/s", jobs=jobs)


async def pick_up(queue: Queue, other: Queue, told: Callable[[int], None]) -> list[Measure]:
    """How soon a worker that has nothing to do starts a job, from the call of the dispatch on.

    `other` is the same store, where there can be over connections of its own; the worker has it.
    """
    clock = queue.clock
    started: asyncio.Queue[float] = asyncio.Queue()

    async def handler(_: object) -> None:
        started.put_nowait(clock.monotonic())

    worker = _worker(other, 1)
    worker.register(_NAME, handler)
    delays: list[float] = []
    async with worker.run():
        for number in range(_SAMPLES + _WARM):
            await clock.sleep(_APART)
            began = clock.monotonic()
            job = await queue.dispatch(_NAME, _PAYLOAD)
            try:
                async with asyncio.timeout(_PATIENCE):
                    delays.append(1000.0 * ((await started.get()) - began))
                    await job.result(timeout=_PATIENCE)
            except TimeoutError as error:
                raise StoreUnavailable(f"no job was run for {_PATIENCE:g} s") from error
            told(number)
    counted = sorted(delays[_WARM:])
    return [
        Measure(
            name=f"pick-up, {name}",
            figure=counted[round(share * (len(counted) - 1))],
            unit="ms",
            jobs=len(counted),
        )
        for name, share in (("median", 0.5), ("95 %", 0.95))
    ]


class _Settled:
    """An observer that counts, and is done when all have completed."""

    def __init__(self, jobs: int) -> None:
        self.number = 0
        self.all: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._jobs = jobs

    def __call__(self, event: Event) -> None:
        if isinstance(event, JobSettled) and isinstance(event.outcome, Completed):
            self.number += 1
            if self.number == self._jobs and not self.all.done():
                self.all.set_result(None)


async def _look_for_progress(queue: Queue, settled: _Settled) -> None:
    """Wait for more, and give up after a time in which there is none."""
    before, end = settled.number, queue.clock.monotonic() + _PATIENCE
    while settled.number == before and not settled.all.done():
        if queue.clock.monotonic() > end:
            raise StoreUnavailable(f"no job has been recorded for {_PATIENCE:g} s", ambiguous=True)
        await queue.clock.wait(settled.all, _LOOK)


def _worker(queue: Queue, slots: int, *observers: Callable[[Event], None]) -> Worker:
    return Worker(queue, concurrency=slots, observers=observers, retention=None)


async def _nothing(_: object) -> None:
    """A job that does nothing."""


async def _check(queue: Queue, name: str, jobs: int, *, done: int) -> None:
    """Compare with what the store says of one queue. Raises `Mismatch`."""
    counts = (await queue.counts()).by_queue[name]
    if counts.capped:
        return
    found = counts.pending + counts.processing, counts.completed
    if found != (jobs - done, done):
        raise Mismatch(f"{jobs:,} dispatched and {done:,} run, but the store has {counts}")
