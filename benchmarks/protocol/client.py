"""What an adapter implements to dispatch, and how the suite has it dispatch.

`Client` is for peers with an asyncio interface, `BlockingClient` for the others. Must never import
anything but the standard library: it runs in each peer's environment.
"""

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.protocol.ledger import Ledger

__all__ = ["ABREAST", "PAYLOAD", "BlockingClient", "Client", "Count", "Setting"]

ABREAST = 50
PAYLOAD = {
    "to": "someone@example.com",
    "subject": "about a hundred and ten bytes",
    "body": 40 * "x",
}

_BURST = 0.001  # seconds between the arrivals of an open loop
_PAUSES = (0.02, 0.06)  # seconds between two pick-ups: the last job is over, the worker idle again
_LOOK = 0.005


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the suite says at the start: where the store is, and what a worker is to be like.

    `url` is the path of a file for SQLite. `durability` is what the store was set to, in the
    suite's words.
    """

    store: str
    url: str
    durability: str
    ledger: str
    concurrency: int
    traced: bool


@dataclass(frozen=True, kw_only=True)
class Count:
    """The jobs in the store: not yet ended, and ended well (None where it keeps no such thing)."""

    unfinished: int
    finished: int | None


class Client(ABC):
    """The dispatching side of a peer, on an event loop. Handlers: `nothing`, `nap`, `delay`."""

    bulk = True  # whether `dispatch_many` is the peer's own

    @abstractmethod
    def __init__(self, setting: Setting) -> None:
        """Keep what `open` needs; there is no event loop yet."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make whatever the store has to have."""

    @abstractmethod
    async def dispatch(self, handler: str, argument: object) -> None:
        """Store one job."""

    @abstractmethod
    async def count(self) -> Count:
        """Ask the store itself."""

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        """Store many jobs; here as some tasks do, since the peer has no call for it."""
        waiting = iter(arguments)

        async def some() -> None:
            for argument in waiting:
                await self.dispatch(handler, argument)

        await asyncio.gather(*(some() for _ in range(ABREAST)))

    # --- what the suite asks for ----------------------------------------------------------------

    async def one_by_one(self, jobs: int) -> float:
        """Seconds for so many dispatches, each awaited before the next begins."""
        began = time.perf_counter()
        for _ in range(jobs):
            await self.dispatch("nothing", PAYLOAD)
        return time.perf_counter() - began

    async def abreast(self, jobs: int) -> float:
        """Seconds for as many by `ABREAST` tasks, each one by one, as requests of a web server."""

        async def some() -> None:
            for _ in range(jobs // ABREAST):
                await self.dispatch("nothing", PAYLOAD)

        began = time.perf_counter()
        await asyncio.gather(*(some() for _ in range(ABREAST)))
        return time.perf_counter() - began

    async def in_bulk(self, handler: str, jobs: int) -> float:
        """Seconds for one call with so many jobs."""
        arguments = [PAYLOAD] * jobs
        began = time.perf_counter()
        await self.dispatch_many(handler, arguments)
        return time.perf_counter() - began

    async def pick_ups(self, ledger: Ledger, samples: int) -> None:
        """Dispatch jobs at random intervals, each when the one before has started."""
        for number in range(samples):
            await asyncio.sleep(random.uniform(*_PAUSES))
            await self.dispatch("delay", time.monotonic_ns())
            await _started(ledger, number)

    async def offer(self, rate: float, seconds: float) -> tuple[int, float]:
        """Dispatch at this rate whatever happens; how many, and in how many seconds."""
        began = time.monotonic()
        jobs = 0
        async with asyncio.TaskGroup() as group:
            for when, burst in _bursts(rate, seconds):
                await asyncio.sleep(max(0.0, began + when - time.monotonic()))
                for _ in range(burst):
                    group.create_task(self.dispatch("delay", int(1e9 * (began + when))))
                jobs += burst
        return jobs, time.monotonic() - began


class BlockingClient(ABC):
    """The dispatching side of a peer whose calls block."""

    bulk = True

    @abstractmethod
    def __init__(self, setting: Setting) -> None:
        """See `Client`."""

    @abstractmethod
    def open(self) -> None:
        """See `Client`."""

    @abstractmethod
    def dispatch(self, handler: str, argument: object) -> None:
        """See `Client`."""

    @abstractmethod
    def count(self) -> Count:
        """See `Client`."""

    def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        """Store many jobs; here one by one, since the peer has no call for it."""
        for argument in arguments:
            self.dispatch(handler, argument)

    # --- what the suite asks for ----------------------------------------------------------------

    async def one_by_one(self, jobs: int) -> float:
        began = time.perf_counter()
        for _ in range(jobs):
            self.dispatch("nothing", PAYLOAD)
        return time.perf_counter() - began

    async def abreast(self, jobs: int) -> float:
        """As `Client.abreast`, by so many threads."""

        def some(_: int) -> None:
            for _ in range(jobs // ABREAST):
                self.dispatch("nothing", PAYLOAD)

        began = time.perf_counter()
        with ThreadPoolExecutor(ABREAST) as threads:
            list(threads.map(some, range(ABREAST)))
        return time.perf_counter() - began

    async def in_bulk(self, handler: str, jobs: int) -> float:
        arguments = [PAYLOAD] * jobs
        began = time.perf_counter()
        self.dispatch_many(handler, arguments)
        return time.perf_counter() - began

    async def pick_ups(self, ledger: Ledger, samples: int) -> None:
        for number in range(samples):
            await asyncio.sleep(random.uniform(*_PAUSES))
            self.dispatch("delay", time.monotonic_ns())
            await _started(ledger, number)

    async def offer(self, rate: float, seconds: float) -> tuple[int, float]:
        began = time.monotonic()
        jobs = 0
        for when, burst in _bursts(rate, seconds):
            await asyncio.sleep(max(0.0, began + when - time.monotonic()))
            for _ in range(burst):
                self.dispatch("delay", int(1e9 * (began + when)))
            jobs += burst
        return jobs, time.monotonic() - began


async def _started(ledger: Ledger, number: int) -> None:
    """Wait for a job of another process, whose only sign is in the ledger."""
    await asyncio.sleep(_LOOK)
    while ledger.delays_count() <= number:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK)


def _bursts(rate: float, seconds: float) -> Iterator[tuple[float, int]]:
    """When, in seconds from the beginning, how many jobs arrive."""
    jobs = 0
    for number in range(1, round(seconds / _BURST) + 1):
        due = int(rate * number * _BURST)
        if due > jobs:
            yield number * _BURST, due - jobs
            jobs = due
