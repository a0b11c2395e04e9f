"""Scenes that the worker's tests share: a rival takes over, writes fail, an end comes in time."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

import tenure
from tenure.driver import Driver, RecordItem
from tests.runtime.world import Interposed, World

__all__ = [
    "Gates",
    "WatchedWrites",
    "Work",
    "crash",
    "dispatch_work",
    "errors_of",
    "fail_writes",
    "hold_up_writes",
    "quiet_worker",
    "running",
    "shut_down",
    "stubborn",
    "take_over",
    "unreachable",
    "without",
    "writes",
]


def errors_of(handle: tenure.WorkerHandle) -> list[tenure.QueueError]:
    """All errors that nobody has read yet."""
    errors: list[tenure.QueueError] = []
    while (error := handle.try_next_error()) is not None:
        errors.append(error)
    return errors


def unreachable(*, ambiguous: bool = False) -> tenure.StoreUnavailable:
    return tenure.StoreUnavailable("the store is away", ambiguous=ambiguous)


def quiet_worker(world: World, **options: Any) -> tenure.Worker:
    """A worker that hardly polls, so that minutes pass in few steps; hints wake it as ever."""
    return tenure.Worker(world.queue, poll_interval=1000.0, **options)


@asynccontextmanager
async def running(worker: tenure.Worker) -> AsyncGenerator[tenure.WorkerHandle]:
    """A run that a failing test aborts, and that a passing one has to leave with nothing to do."""
    handle = worker.run()
    try:
        yield handle
        # In real time, and long: with work left it would wait for a clock that stands still.
        await asyncio.wait_for(handle.shutdown(), 20.0)
    finally:
        handle.abort()
        await handle.wait()


async def stubborn(gate: asyncio.Event) -> None:
    """Wait for the gate as a handler that cannot be interrupted would."""
    async with asyncio.timeout(20.0):  # real seconds, so that a failing test comes to its end
        while not gate.is_set():
            with suppress(asyncio.CancelledError):
                await gate.wait()


async def shut_down(
    world: World, handle: tenure.WorkerHandle, drain: float = 0.0
) -> tenure.QueueError | None:
    """Shut down within the promised bound of the clock."""
    ending = asyncio.create_task(handle.shutdown(drain))
    await world.advance(drain + 1.0)
    # The end of threads and of cancelled tasks is bounded too, but in real time.
    await world.until(ending.done)
    return ending.result()


async def take_over(world: World, job_id: str) -> tenure.Claim:
    """Let a rival replace the job's hold, at an instant at which its lease has run out.

    No time passes here: the worker hears of it when it writes or extends, and not before.
    """
    later = world.clock.now() + timedelta(days=1)
    expired = await world.inner.expired(1000, now=later)
    [hold] = [entry.hold for entry in expired.holds if entry.hold.job_id == job_id]
    assert list(await world.inner.reclaim(1, [0.0], only=[hold], now=later)) == [hold]
    [claim] = await world.inner.claim(_request("rival", 30.0), now=later)
    assert claim.job.id == job_id
    return claim


async def crash(world: World, job: tenure.JobHandle, times: int = 1) -> None:
    """Let the job be started by a worker that is lost, `times` in a row; it is due again after."""
    for turn in range(times):
        [claim] = await world.inner.claim(_request(f"crash-{turn}", 1.0))
        assert claim.job.id == job.id
        await world.advance(1.0)
        assert list(await world.inner.reclaim(1, [0.0], only=[claim.hold])) == [claim.hold]


def _request(token: str, lease: float) -> tenure.ClaimRequest:
    return tenure.ClaimRequest(
        token=token,
        queues=(tenure.QueueLimit("default", 1),),
        limit=1,
        worker="elsewhere",
        lease=lease,
    )


# --- handlers that wait for the test --------------------------------------------------------------


class Gates:
    """A handler whose attempts wait until the test lets each of them end."""

    def __init__(self) -> None:
        self.open: dict[str, asyncio.Event] = {}
        self.starts: list[str] = []

    async def __call__(self, payload: str) -> str:
        self.starts.append(payload)
        await self.open.setdefault(payload, asyncio.Event()).wait()
        return payload

    def let(self, *payloads: str) -> None:
        for payload in payloads:
            self.open[payload].set()


class Work:
    """A handler that waits for its gate, and tells how it was stopped."""

    def __init__(self, world: World) -> None:
        self.gate = asyncio.Event()
        self.starts = 0
        self.cancelled_at: list[float] = []
        self._world = world

    async def __call__(self, payload: None) -> str:
        self.starts += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled_at.append(self._world.clock.monotonic())
            raise
        return "done"


async def dispatch_work(world: World, *payloads: str) -> list[tenure.JobHandle]:
    """One job for each payload, given the time to be started."""
    calls = [tenure.Call("work", payload) for payload in payloads]
    jobs = list(await world.queue.dispatch_many(calls))
    await world.advance(0.1)
    return jobs


# --- writes, alone or in an exchange --------------------------------------------------------------


def fail_writes(world: World, error: Exception, times: int = 1, *, after: bool = False) -> None:
    """As `Interposed.fail`, for every call that records outcomes."""
    world.driver.fail("record", error, times, after=after)
    world.driver.hooks["exchange"] = world.driver.hooks["record"]


def hold_up_writes(world: World, *, after: bool = False) -> asyncio.Event:
    """As `Interposed.hold_up`, for every call that records outcomes."""
    gate = world.driver.hold_up("record", after=after)
    world.driver.hooks["exchange"] = world.driver.hooks["record"]
    return gate


def writes(world: World) -> int:
    """How many calls that record outcomes have begun."""
    return sum(call in ("record", "exchange") for call in world.driver.calls)


class WatchedWrites(Interposed):
    """Stands before a world's store: keeps each batch of outcomes, refuses those that it is told.

    A refusal is definite and of the whole batch, as a store's would be.
    """

    def __init__(
        self, world: World, refuses: Callable[[tenure.Hold, tenure.Outcome], bool] | None = None
    ) -> None:
        super().__init__(world.inner, world.driver.capabilities)
        self._refuses = refuses
        self.batches: list[list[RecordItem]] = []
        world.driver.inner = self

    @property
    def outcomes(self) -> list[tenure.Outcome]:
        return [outcome for batch in self.batches for _, outcome in batch]

    async def record(self, items: Sequence[RecordItem], *, now: datetime | None = None) -> Any:
        self._look(items)
        return await self.inner.record(items, now=now)

    async def exchange(
        self,
        items: Sequence[RecordItem],
        request: tenure.ClaimRequest,
        *,
        now: datetime | None = None,
    ) -> Any:
        self._look(items)
        return await self.inner.exchange(items, request, now=now)

    def _look(self, items: Sequence[RecordItem]) -> None:
        self.batches.append(list(items))
        refuses = self._refuses
        if refuses is not None and any(refuses(hold, outcome) for hold, outcome in items):
            raise tenure.StoreError("the store will not take one of these")

    def keeper_handle(self) -> tenure.KeeperHandle:
        return self.inner.keeper_handle()


def without(driver: type[Driver], *missing: tenure.Capability) -> frozenset[tenure.Capability]:
    """What the driver can do, but for these."""
    return driver.capabilities - frozenset(missing)
