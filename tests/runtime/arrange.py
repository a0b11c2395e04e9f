"""Arrangements for tests of claiming and executing: seen requests, name filters, a blocked loop."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import tenure
from tenure.driver import Capability, Driver, RecordItem
from tenure.drivers.memory import MemoryDriver
from tenure.testing import ManualClock
from tests.runtime.scenes import errors_of, shut_down
from tests.runtime.world import Interposed, World

__all__ = [
    "AT_SHUTDOWN",
    "Gated",
    "LeapingClock",
    "NamesDriver",
    "Requests",
    "capabilities_but",
    "database",
    "hidden",
    "open_world_on",
    "released",
    "running",
    "turns",
]


AT_SHUTDOWN = "worker shutdown before dispatch"


class Requests(Interposed):
    """Stands before a world's store and keeps every claim request, with the time it came."""

    def __init__(self, world: World) -> None:
        super().__init__(world.inner, world.driver.capabilities)
        self._clock = world.clock
        self.requests: list[tenure.ClaimRequest] = []
        self.times: list[float] = []
        self.answers: list[Sequence[tenure.Claim]] = []
        world.driver.inner = self

    async def claim(self, request: tenure.ClaimRequest, *, now: datetime | None = None) -> Any:
        self._see(request)
        claims = await self.inner.claim(request, now=now)
        self.answers.append(claims)
        return claims

    async def exchange(
        self,
        items: Sequence[RecordItem],
        request: tenure.ClaimRequest,
        *,
        now: datetime | None = None,
    ) -> Any:
        self._see(request)
        exchanged = await self.inner.exchange(items, request, now=now)
        self.answers.append(exchanged.claims)
        return exchanged

    def _see(self, request: tenure.ClaimRequest) -> None:
        self.requests.append(request)
        self.times.append(self._clock.monotonic())

    def keeper_handle(self) -> tenure.KeeperHandle:
        return self.inner.keeper_handle()


class NamesDriver(MemoryDriver):
    """The memory driver filters by name where it is asked to; this one says so."""

    capabilities = frozenset(Capability)


class LeapingClock(ManualClock):
    """Can also let time pass within one step of the event loop."""

    def leap(self, seconds: float) -> None:
        """What an event loop sees that was blocked meanwhile: all that fell due rings at once."""
        with self._lock:
            end = self._elapsed + seconds
            due = [heapq.heappop(self._timers) for _ in range(len(self._timers))]
            for entry in [entry for entry in due if entry.at > end]:
                heapq.heappush(self._timers, entry)
            self._pass(seconds)
        for entry in due:
            if entry.at <= end and not entry.cancelled:
                entry.fire()


def released(events: list[tenure.Event]) -> list[tuple[str, str]]:
    """The jobs that were put back, each with the reason."""
    return [
        (event.job.id, event.outcome.reason)
        for event in events
        if isinstance(event, tenure.JobSettled) and isinstance(event.outcome, tenure.Released)
    ]


class Gated:
    """A worker whose handlers wait for their gates, and the counts of what runs."""

    def __init__(self, world: World, **options: Any) -> None:
        self.events: list[tenure.Event] = []
        self.worker = tenure.Worker(world.queue, observers=[self.events.append], **options)
        self.gates: dict[Any, asyncio.Event] = {}
        self.starts: list[Any] = []
        self.running = 0
        self.most = 0
        self.worker.register("work", self.work)

    async def work(self, payload: Any) -> Any:
        self.starts.append(payload)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gates.setdefault(payload, asyncio.Event()).wait()
        finally:
            self.running -= 1
        return payload


@asynccontextmanager
async def open_world_on(
    inner: type[MemoryDriver], clock: ManualClock | None = None
) -> AsyncGenerator[World, None]:
    """A world on another memory driver, or with another clock."""
    clock = clock or ManualClock()
    driver = inner(clock=clock)
    world = World(clock, driver, Interposed(driver))
    async with world.queue:
        yield world


@asynccontextmanager
async def running(world: World, worker: tenure.Worker) -> AsyncGenerator[tenure.WorkerHandle, None]:
    """A run that ends with its test: in order, with no error left that the test has not read.

    After a failure it is aborted, since nobody would let the time of a shutdown pass.
    """
    handle = worker.run()
    try:
        yield handle
    except BaseException:
        handle.abort()
        await handle.wait()
        raise
    unread = errors_of(handle)
    first = await shut_down(world, handle)
    assert [*unread, *([first] if first else []), *errors_of(handle)] == []


def capabilities_but(store: str, *missing: Capability) -> frozenset[Capability]:
    """What the store can do, but for these."""
    driver: type[Driver] = MemoryDriver
    if store == "sqlite":
        from tenure.drivers.sqlite import SqliteDriver

        driver = SqliteDriver
    return driver.capabilities - frozenset(missing)


def hidden(store: str, *missing: Capability) -> dict[str, Any]:
    """For `open_world`: the store without these capabilities."""
    return {"capabilities": capabilities_but(store, *missing)}


async def turns(count: int) -> None:
    """Let the event loop turn, without any claim to be at rest after it."""
    for _ in range(count):
        await asyncio.sleep(0)


def database(tmp_path: Path) -> str:
    return str(tmp_path / "jobs.db")
