"""A fresh store of each kind, and the time that passes there: what the recipes run on.

On the memory store and a SQLite file the clock stands still and `until` moves it; on a server,
whose clock is its own, `until` waits. A recipe is written once and need not know which it is.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import tenure
from tenure.driver import Driver
from tests.regressions.watched import Watched
from tests.runtime.scenes import shut_down
from tests.runtime.world import World, open_world

__all__ = ["LEASE", "Opening", "Site", "live_site", "still_site"]

LEASE = 1.0  # seconds, of the workers of a site
_STEP = 0.05


class Site(ABC):
    """One store with one queue on it. `still` where the clock stands until it is moved."""

    still: ClassVar[bool]

    def __init__(self, queue: tenure.Queue, clock: tenure.Clock) -> None:
        self.queue = queue
        self.clock = clock

    async def driver(self) -> Driver:
        return await self.queue.driver()

    async def state(self, job_id: str) -> str:
        return str((await self.queue.get(job_id)).state)

    def worker(self, **options: Any) -> Watched:
        """A worker whose events are watched; it also runs canaries."""
        return Watched(self.queue, {"lease": LEASE, "poll_interval": 0.5, **options})

    @abstractmethod
    async def until(
        self,
        holds: Callable[[], Awaitable[bool]],
        describe: Callable[[], str],
        *,
        seconds: float = 30.0,
    ) -> None:
        """Let time pass until it holds; after `seconds`, fail with what `describe` tells."""

    @abstractmethod
    async def end(self, handle: tenure.WorkerHandle, drain: float) -> tenure.QueueError | None:
        """Shut down; fails where that takes longer than `drain` and a second."""

    @abstractmethod
    async def skip(self, seconds: float) -> None:
        """Let so much time pass where the clock stands still; elsewhere go on at once."""

    async def until_state(self, state: str, *job_ids: str, seconds: float = 30.0) -> None:
        """Let time pass until all these jobs are in one state."""
        seen: list[str] = []

        async def reached() -> bool:
            seen[:] = [await self.state(job_id) for job_id in job_ids]
            return set(seen) == {state}

        await self.until(reached, lambda: f"{seen} instead of {state}", seconds=seconds)

    async def until_true(
        self, holds: Callable[[], bool], describe: Callable[[], str], *, seconds: float = 30.0
    ) -> None:
        """`until` for what needs no look at the store."""

        async def look() -> bool:
            return holds()

        await self.until(look, describe, seconds=seconds)


Opening = Callable[[], AbstractAsyncContextManager[Site]]


class _StillSite(Site):
    """Time passes only when somebody waits for something."""

    still = True

    def __init__(self, world: World) -> None:
        super().__init__(world.queue, world.clock)
        self._world = world

    async def until(
        self,
        holds: Callable[[], Awaitable[bool]],
        describe: Callable[[], str],
        *,
        seconds: float = 30.0,
    ) -> None:
        end = self.clock.monotonic() + seconds
        await self._world.settle()
        while not await holds():
            assert self.clock.monotonic() < end, f"not within {seconds:g} s: {describe()}"
            await self._world.advance(_STEP)

    async def skip(self, seconds: float) -> None:
        await self._world.advance(seconds)

    async def end(self, handle: tenure.WorkerHandle, drain: float) -> tenure.QueueError | None:
        return await shut_down(self._world, handle, drain)


class _LiveSite(Site):
    """Time passes by itself."""

    still = False

    async def until(
        self,
        holds: Callable[[], Awaitable[bool]],
        describe: Callable[[], str],
        *,
        seconds: float = 30.0,
    ) -> None:
        end = self.clock.monotonic() + seconds
        while not await holds():
            assert self.clock.monotonic() < end, f"not within {seconds:g} s: {describe()}"
            await asyncio.sleep(0.02)

    async def skip(self, seconds: float) -> None:
        return

    async def end(self, handle: tenure.WorkerHandle, drain: float) -> tenure.QueueError | None:
        async with asyncio.timeout(drain + 1.0):
            return await handle.shutdown(drain)


@asynccontextmanager
async def still_site(store: str, folder: Path) -> AsyncGenerator[Site]:
    """A site on the memory store or a file, with a clock that stands still."""
    async with open_world(store, folder) as world:
        yield _StillSite(world)


@asynccontextmanager
async def live_site(url: str) -> AsyncGenerator[Site]:
    """A site on the store that the URL names, in real time."""
    clock = tenure.SystemClock()
    async with tenure.connect(url, clock=clock) as queue:
        yield _LiveSite(queue, clock)
