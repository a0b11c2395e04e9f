"""The connections of one event loop, and how a statement gets through one of them.

Tries again where the server rolled back for a deadlock or a serialization failure. Never repeats a
statement that may have been done: that is for the caller to know. Holds no connection for longer
than a statement, and none while it waits.
"""

import asyncio
import os
import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from tenure.clock import Clock
from tenure.drivers.postgres.client import Connection, Refusal, connect
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.rows import Row
from tenure.drivers.postgres.statements import Statements
from tenure.errors import StoreError, StoreUnavailable

__all__ = ["Pool", "Runner", "persist"]

_TRIES = 10
_PAUSE = 0.01  # seconds; times the number of the try, with jitter


class Runner(Protocol):
    """What runs one statement by its name, in a transaction of its own or in somebody's."""

    async def fetch(self, statement: str, *arguments: object) -> list[Row]: ...


class _Slots:
    """The right to use a connection, so many times; who asks first gets one first."""

    def __init__(self, count: int, clock: Clock) -> None:
        self._free = count
        self._clock = clock
        self._waiting: deque[asyncio.Future[object]] = deque()

    async def take(self, timeout: float) -> bool:
        """Whether there was one within `timeout` seconds."""
        if self._free > 0:
            self._free -= 1
            return True
        turn: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            if await self._clock.wait(turn, timeout):
                return True
        except BaseException:
            if turn.done():
                self.give_back()
            raise
        finally:
            if not turn.done():
                self._waiting.remove(turn)
        return False

    def give_back(self) -> None:
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._free += 1


class Pool:
    """Up to `pool_size` connections, made when needed; the one used last is used next.

    The server gives each statement a commit of its own, so that a second connection already hides
    the wait for the disk; more than a few do not help.

    Where a connection is lost, so are the idle ones: they lead to the same server, which has gone,
    was demoted or does not answer, and each would have to find that out by a call that fails.
    `lost` is then called too.
    """

    def __init__(
        self,
        options: Options,
        statements: Statements,
        clock: Clock,
        *,
        pooled: bool,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._options = options
        self._statements = statements
        self._clock = clock
        # A pooler gives each transaction another server connection.
        self._pooled = pooled
        self._lost = lost
        self._slots = _Slots(options.pool_size, clock)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._process = os.getpid()
        self._closed = False

    async def fetch(self, statement: str, *arguments: object) -> list[Row]:
        """The rows of `queries/<statement>.sql`. Raises `StoreError`."""
        if self._process != os.getpid():
            raise StoreError("this store was opened before a fork; open one in the child")
        timeout = self._options.timeout
        if not await self._slots.take(timeout):
            raise StoreUnavailable(
                f"no connection to PostgreSQL became free within {timeout:g} s; the server is too "
                "slow for what it is asked, or pool_size is too low"
            )
        try:
            return await self._run(self._statements.text(statement), arguments)
        finally:
            self._slots.give_back()

    async def _run(self, sql: str, arguments: tuple[object, ...]) -> list[Row]:
        connection = await self._connection()
        try:
            return await persist(connection, sql, arguments, self._options.timeout, self._clock)
        finally:
            self._busy.discard(connection)
            if connection.usable:
                self._idle.append(connection)
            else:
                idle, self._idle = self._idle, []
                for each in idle:
                    each.terminate()
                self._lost()

    async def _connection(self) -> Connection:
        if self._is_closed():
            raise StoreUnavailable("the store is closed")
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                break
        else:
            address = self._options.address
            connection = await connect(address, self._clock, prepare=not self._pooled)
            if self._is_closed():  # while it connected
                connection.terminate()
                raise StoreUnavailable("the store was closed")
        self._busy.add(connection)
        return connection

    def _is_closed(self) -> bool:
        return self._closed

    @property
    def backends(self) -> frozenset[int]:
        """The numbers of the server processes behind the connections."""
        return frozenset(each.backend for each in (*self._idle, *self._busy))

    async def close(self) -> None:
        """Close what is idle, drop what is busy."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in list(self._busy):
            connection.terminate()
        try:
            await asyncio.gather(*(connection.close() for connection in idle))
        finally:
            for connection in idle:  # cancelled: a goodbye may not even have begun
                connection.terminate()


async def persist(
    connection: Connection, sql: str, arguments: tuple[object, ...], timeout: float, clock: Clock
) -> list[Row]:
    """Run a statement, again where the server rolled it back and another try may do."""
    tries = 0
    while True:
        tries += 1
        try:
            return await connection.fetch(sql, arguments, timeout)
        except Refusal as refusal:
            if tries == _TRIES:
                raise refusal.error from refusal
        await clock.sleep(random.uniform(0, _PAUSE * tries))
