"""Blocking wake-up: waits on the server, on a connection of its own, for jobs in some queues.

A script that makes a job claimable replaces the one entry of its queue's stream; XREAD with the
newest id seen blocks until there is a newer one. All that wait are told, and none takes anything
away from another; what happens while nobody reads is seen by the next read, so a wait sees all that
was enqueued after it began. While nobody waits nothing is read, so that a busy worker costs nothing
here. A lost connection only costs latency: callers poll as well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from random import random
from typing import Any

from tenure.clock import Clock
from tenure.drivers.redis.client import Wire
from tenure.drivers.redis.faults import Lost, Refused
from tenure.drivers.redis.route import Route
from tenure.drivers.redis.scripts import Keys

__all__ = ["Waiting"]

_BLOCK = 10.0  # seconds for one read, so that a dead connection is noticed
_PAUSES = (0.05, 0.2, 0.5, 1.0)  # seconds between tries to connect
_START = "0"


class Waiting:
    """The listeners of one driver, one for each set of queues that is waited for."""

    def __init__(
        self, connect: Callable[[], Awaitable[Wire]], route: Route, keys: Keys, clock: Clock
    ) -> None:
        self._connect = connect
        self._route = route
        self._keys = keys
        self._clock = clock
        self._listeners: dict[frozenset[str], _Listener] = {}

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """See `Driver.wait`."""
        asked = frozenset(queues)
        listener = self._listeners.get(asked)
        if listener is None:
            listener = self._listeners[asked] = _Listener(
                self._connect, self._route, [self._keys.wake(queue) for queue in asked], self._clock
            )
        return await listener.wait(timeout)

    async def close(self) -> None:
        """Stop reading, and end all waits."""
        listeners, self._listeners = self._listeners, {}
        async with AsyncExitStack() as closing:  # all of them, also when this is cancelled
            for listener in listeners.values():
                closing.push_async_callback(listener.close)


class _Listener:
    """Reads the streams of some queues while somebody waits."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Wire]],
        route: Route,
        streams: Sequence[str],
        clock: Clock,
    ) -> None:
        self._connect = connect
        self._route = route
        self._clock = clock
        self._seen = dict.fromkeys(streams, _START)
        self._waiters: set[asyncio.Future[None]] = set()
        self._reader: asyncio.Task[None] | None = None
        self._wire: Wire | None = None

    async def wait(self, timeout: float) -> bool:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        if self._seen and (self._reader is None or self._reader.done()):
            self._reader = asyncio.create_task(self._read_on(), name="tenure-redis-wait")
        try:
            return await self._clock.wait(waiter, timeout)
        finally:
            self._waiters.discard(waiter)

    async def close(self) -> None:
        reader, self._reader = self._reader, None
        try:
            if reader is not None:
                reader.cancel()
                await asyncio.wait([reader])
        finally:
            self._tell()
            await self._drop()

    async def _read_on(self) -> None:
        """Read until nobody waits. A read that is under way then goes on for the next to come."""
        failures = 0
        while self._waiters:
            try:
                told = await self._read()
            except (Lost, Refused) as error:
                await self._drop()
                if isinstance(error, Refused) and error.code == "MOVED":
                    self._route.follow(error)
                pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
                await self._clock.sleep(pause * (1 - random() / 2))  # not all at the same moment
                failures += 1
            else:
                failures = 0
                if told:
                    self._tell()

    async def _read(self) -> bool:
        """Block until there is something new (True), or for a while."""
        if self._wire is None:
            self._wire = await self._connect()
            # What was told on the old connection's server may be gone with it: look from the start.
            self._seen = dict.fromkeys(self._seen, _START)
        reply: list[Any] | None = await self._wire.call(
            *("XREAD", "BLOCK", int(_BLOCK * 1000), "STREAMS"),
            *self._seen.keys(),
            *self._seen.values(),
            blocks=_BLOCK,
        )
        for stream, entries in reply or ():
            self._seen[stream.decode()] = entries[-1][0].decode()
        return bool(reply)

    def _tell(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()
