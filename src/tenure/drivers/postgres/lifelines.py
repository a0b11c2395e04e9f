"""Lifelines: for each worker a session that holds a lock for as long as the worker's process lives.

The session has a connection, an event loop and a thread of its own, so that a blocked event loop
does not keep it from coming back. A session may also end without its worker: what others then do is
to shorten leases to `GRACE` seconds, never less, and whoever comes back within these has its leases
as they were. A child closes its copy of the connection, which would else outlive the parent.
"""

import asyncio
import logging
import os
import random
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from enum import Enum
from weakref import finalize

from tenure.clock import Clock
from tenure.drivers.postgres.client import Connection, Refusal, connect
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.rows import Row
from tenure.drivers.postgres.statements import Statements
from tenure.errors import StoreError

__all__ = ["GRACE", "Lifeline", "tie"]

GRACE = 5.0  # seconds
_SHORTEST = 0.1  # seconds between tries to connect, doubled up to the longest
_LONGEST = 1.0
_CHECK = 10.0  # a connection that only waits does not notice that the network is cut
_FIRST = 2.0  # how long a worker that starts waits to be tied
_logger = logging.getLogger("tenure.postgres")


class _Wish(Enum):
    """How the session is to end."""

    CLOSE = "close"
    CUT = "cut"


async def tie(worker: str, options: Options, statements: Statements, clock: Clock) -> "Lifeline":
    """A lifeline for the worker, tied to its process now, or, if that takes long, a while later."""
    session = _Session(worker, options, statements, clock)
    lifeline = Lifeline(session, clock.spawn("tenure-lifeline", session.run).join)
    await clock.wait(asyncio.wrap_future(session.tied), _FIRST)
    return lifeline


class Lifeline:
    """See `tenure.Lifeline`. One that is dropped without `close` is given up."""

    def __init__(self, session: "_Session", join: Callable[[], None]) -> None:
        self._session = session
        self._join = join
        self._process = os.getpid()
        self._dropped = finalize(self, session.end, _Wish.CLOSE)
        self._dropped.atexit = False  # the end of the process is for the server to see

    async def close(self) -> None:
        await self._end(_Wish.CLOSE)

    async def cut(self) -> None:
        await self._end(_Wish.CUT)

    async def _end(self, wish: _Wish) -> None:
        if self._process != os.getpid():
            return
        if self._dropped.detach() is not None:
            self._session.end(wish)
        await asyncio.wrap_future(self._session.ended)
        self._join()  # it has nothing left to do


class _Session:
    """What the thread does: connects, ties, waits, and all that again when the session is lost."""

    def __init__(self, worker: str, options: Options, statements: Statements, clock: Clock) -> None:
        self._worker = worker
        self._options = options
        self._statements = statements
        self._clock = clock
        self._process = os.getpid()
        # Of the library, whatever the host uses: see fork.py.
        self._loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop()
        self._wish: _Wish | None = None
        self._pause = _SHORTEST
        self._known = False  # whether the store may take the worker for one with a lifeline
        self._news: asyncio.Future[object] = self._loop.create_future()
        self.tied: Future[None] = Future()
        self.ended: Future[None] = Future()
        for future in (self.tied, self.ended):
            future.set_running_or_notify_cancel()  # who waits may be cancelled, they may not

    # --- from any thread ------------------------------------------------------------------------

    def end(self, wish: _Wish) -> None:
        """Let the thread end. In a forked child nothing is done."""
        if self._process == os.getpid():
            with suppress(RuntimeError):  # it has ended, and its loop with it
                self._loop.call_soon_threadsafe(self._wished, wish)

    # --- in its own thread ----------------------------------------------------------------------

    def run(self) -> None:
        try:
            self._loop.run_until_complete(self._hold())
        finally:
            self._loop.close()
            self.ended.set_result(None)

    def _wished(self, wish: _Wish) -> None:
        self._wish = wish
        self._tell()

    def _tell(self) -> None:
        if not self._news.done():
            self._news.set_result(None)

    async def _hold(self) -> None:
        while self._wish is None:
            await self._try()
            if self._wish is None:
                self._news = self._loop.create_future()
                await self._clock.wait(self._news, random.uniform(self._pause / 2, self._pause))
                self._pause = min(self._pause * 2, _LONGEST)
        if self._wish is _Wish.CLOSE and self._known:
            await self._try()  # the session was lost just now; without it the worker is not gone

    async def _try(self) -> None:
        """Have a session, until it is lost or to end."""
        self._news = self._loop.create_future()
        try:
            connection = await connect(self._options.address, self._clock, prepare=False)
            try:
                await self._keep(connection)
            finally:
                await connection.close()
        except (StoreError, Refusal) as error:
            _logger.debug("the lifeline is lost", extra={"reason": str(error)})
        except Exception:
            # A defect; it must not let a worker that lives be taken for gone.
            _logger.exception("the lifeline failed")

    async def _keep(self, connection: Connection) -> None:
        if self._wish is None:
            connection.watch(self._tell)
            self._known = True
            rows = await self._fetch(connection, "tie", self._worker, GRACE)
            self._pause = _SHORTEST
            if not self.tied.done():
                self.tied.set_result(None)
            while not await self._clock.wait(self._news, _CHECK):
                await connection.fetch("SELECT", (), GRACE)
            if self._asked() is _Wish.CUT:
                await self._fetch(connection, "unlock", rows[0][0])
        if self._asked() is _Wish.CLOSE:
            await self._fetch(connection, "untie", self._worker)
            self._known = False

    def _asked(self) -> _Wish | None:
        return self._wish

    async def _fetch(self, connection: Connection, name: str, *arguments: object) -> list[Row]:
        return await connection.fetch(self._statements.text(name), arguments, self._options.timeout)
