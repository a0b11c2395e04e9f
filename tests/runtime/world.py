"""A store, a queue and a clock that stands still: what a test of the worker runs in."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

import tenure
from tenure.driver import Capability, Driver, KeeperHandle
from tenure.drivers.memory import MemoryDriver
from tenure.drivers.sqlite import SqliteDriver
from tenure.testing import ManualClock

__all__ = ["Interposed", "World", "each_store", "open_world"]

T = TypeVar("T")

each_store = pytest.mark.parametrize("store", ["memory", "sqlite"])


class World:
    """One store with one queue on it; time goes only through `advance`."""

    def __init__(self, clock: ManualClock, inner: Driver, driver: "Interposed") -> None:
        self.clock = clock
        self.inner = inner
        self.driver = driver
        self.queue = tenure.Queue(driver, clock=clock)

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def settle(self) -> None:
        await self.clock.settle()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait in real time, for what a thread of a handler does at its own pace."""
        for _ in range(5000):
            await self.clock.settle()
            if happened():
                return
            await asyncio.sleep(0.001)
        raise AssertionError("it did not happen")

    async def ended(self, *jobs: tenure.JobHandle) -> None:
        """Wait in real time until none of these is being processed: threads answer when they do."""
        for _ in range(5000):
            await self.clock.settle()
            if "processing" not in [await self.state(job) for job in jobs]:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("they do not end")

    async def run(self, call: Awaitable[T]) -> T:
        """The result of a call, with as much time going by as it takes, up to two minutes."""
        task = asyncio.ensure_future(call)
        for _ in range(2400):
            await self.clock.settle()
            if task.done():
                return task.result()
            await self.clock.advance(0.05)
        task.cancel()
        raise AssertionError("it did not end")

    async def job(self, handle: tenure.JobHandle) -> tenure.Job[Any]:
        return await self.queue.get(handle.id)

    async def state(self, handle: tenure.JobHandle) -> str:
        return str((await self.queue.get(handle.id)).state)

    async def claim_elsewhere(
        self, limit: int = 1, *, lease: float = 30.0, token: str = "elsewhere"
    ) -> Sequence[tenure.Claim]:
        """Claim as another worker would, around the interposed driver."""
        request = tenure.ClaimRequest(
            token=token,
            queues=(tenure.QueueLimit("default", limit),),
            limit=limit,
            worker="elsewhere",
            lease=lease,
        )
        return await self.inner.claim(request)


@asynccontextmanager
async def open_world(
    store: str = "memory",
    tmp_path: Path | None = None,
    *,
    capabilities: frozenset[Capability] | None = None,
) -> AsyncGenerator[World]:
    """A fresh world. `capabilities` hides what the store can do beyond them."""
    clock = ManualClock()
    inner: Driver
    if store == "memory":
        inner = MemoryDriver(clock=clock)
    else:
        assert tmp_path is not None
        inner = SqliteDriver(str(tmp_path / "jobs.db"), synchronous="NORMAL", clock=clock)
    world = World(clock, inner, Interposed(inner, capabilities))

    async def at_rest() -> int:
        """The store's own threads have answered everything that was asked before."""
        await inner.extend([], 1.0)
        await inner.get("none")
        return len(world.driver.calls)

    if store != "memory":
        await inner.open()
        clock.barrier(at_rest)
    try:
        async with world.queue:
            yield world
    finally:
        await inner.close()


def _passing(operation: str) -> Any:
    async def call(self: "Interposed", *arguments: Any, **options: Any) -> Any:
        inner = getattr(self.inner, operation)
        return await self.pass_on(operation, lambda: inner(*arguments, **options))

    return call


Hook = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


class Interposed(Driver):
    """Passes everything on to a driver; a test can step in between.

    `hooks[operation]` is called with a function that makes the real call, and gives the answer. A
    hook stays until it is removed. `calls` lists the operations in the order in which they began.
    """

    def __init__(self, inner: Driver, capabilities: frozenset[Capability] | None = None) -> None:
        self.inner = inner
        self.capabilities = inner.capabilities if capabilities is None else capabilities  # type: ignore[misc]
        self.hooks: dict[str, Hook] = {}
        self.calls: list[str] = []
        self.keeper_hook: Callable[[], None] | None = None

    async def pass_on(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        self.calls.append(operation)
        hook = self.hooks.get(operation)
        return await (call() if hook is None else hook(call))

    def fail(
        self, operation: str, error: Exception, times: int = 1, *, after: bool = False
    ) -> None:
        """Let the next `times` calls raise: before they reach the store, or after."""
        left = times

        async def hook(call: Callable[[], Awaitable[Any]]) -> Any:
            nonlocal left
            if left <= 0:
                return await call()
            left -= 1
            if after:
                await call()
            raise error

        self.hooks[operation] = hook

    def hold_up(self, operation: str, *, after: bool = False) -> asyncio.Event:
        """Let calls wait for the returned event: before they reach the store, or after."""
        gate = asyncio.Event()

        async def hook(call: Callable[[], Awaitable[Any]]) -> Any:
            if after:
                answer = await call()
                await gate.wait()
                return answer
            await gate.wait()
            return await call()

        self.hooks[operation] = hook
        return gate

    def keeper_handle(self) -> KeeperHandle:
        return _InterposedKeeper(self, self.inner.keeper_handle())

    async def close(self) -> None:
        await self.inner.close()

    open: Any = _passing("open")
    enqueue: Any = _passing("enqueue")
    claim: Any = _passing("claim")
    enqueue_within: Any = _passing("enqueue_within")
    record: Any = _passing("record")
    record_within: Any = _passing("record_within")
    exchange: Any = _passing("exchange")
    extend: Any = _passing("extend")
    expired: Any = _passing("expired")
    reclaim: Any = _passing("reclaim")
    next_due: Any = _passing("next_due")
    progress: Any = _passing("progress")
    counts: Any = _passing("counts")
    cancel: Any = _passing("cancel")
    retry: Any = _passing("retry")
    delete: Any = _passing("delete")
    move: Any = _passing("move")
    purge: Any = _passing("purge")
    prune: Any = _passing("prune")
    pause: Any = _passing("pause")
    get: Any = _passing("get")
    list: Any = _passing("list")
    history: Any = _passing("history")
    put_limit: Any = _passing("put_limit")
    drop_limit: Any = _passing("drop_limit")
    limits: Any = _passing("limits")
    put_schedules: Any = _passing("put_schedules")
    drop_schedules: Any = _passing("drop_schedules")
    pause_schedule: Any = _passing("pause_schedule")
    schedules: Any = _passing("schedules")
    fire: Any = _passing("fire")
    report: Any = _passing("report")
    workers: Any = _passing("workers")
    lifeline: Any = _passing("lifeline")
    shorten: Any = _passing("shorten")
    wait: Any = _passing("wait")


class _InterposedKeeper:
    """The keeper's way to the store; `keeper_hook` is called in its thread before each call."""

    def __init__(self, driver: Interposed, inner: KeeperHandle) -> None:
        self._driver = driver
        self._inner = inner

    def extend(self, holds: Sequence[tenure.Hold], lease: float) -> Sequence[tenure.Kept]:
        self._driver.calls.append("keeper.extend")
        if self._driver.keeper_hook is not None:
            self._driver.keeper_hook()
        return self._inner.extend(holds, lease)

    def close(self) -> None:
        self._inner.close()
