"""All that an opened driver has: its connections, its calls in flight, its waiters.

Built by `open_session` on the event loop that uses it, and of no use on another or after a fork.
"""

import asyncio
import logging
import os
import random
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, TypeVar

from tenure.clock import Clock
from tenure.drivers.postgres import enqueue, inspection
from tenure.drivers.postgres.client import Connection, Refusal, connect
from tenure.drivers.postgres.gather import Calls, Sharing
from tenure.drivers.postgres.heads import Heads
from tenure.drivers.postgres.keeper import Keeper
from tenure.drivers.postgres.lifelines import GRACE, Lifeline, tie
from tenure.drivers.postgres.listen import Listener
from tenure.drivers.postgres.notify import Notifier
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.pool import Pool
from tenure.drivers.postgres.schema import prepare
from tenure.drivers.postgres.statements import Statements
from tenure.drivers.postgres.vacuum import Vacuum
from tenure.drivers.postgres.wake import Wakes
from tenure.errors import InvalidConfiguration, StoreError
from tenure.types import Enqueued, Held, NewJob

__all__ = ["Session", "is_pooled", "open_session"]

T = TypeVar("T")

_TOGETHER = 1000  # jobs of several callers in one statement
_FOLD_EVERY = 64  # calls that end jobs, on average
_FOLDED = 10_000
_CLOSE_TIMEOUT = 2.0
_logger = logging.getLogger("tenure.postgres")


async def open_session(options: Options, statements: Statements, clock: Clock) -> "Session":
    """Make sure of the schema, look at what is in between, and be ready for calls."""
    connection = await connect(options.address, clock, prepare=False)
    try:
        pooled = await is_pooled(connection, options)
        if pooled and options.migrate:
            raise InvalidConfiguration(
                "migrate",
                True,
                "needs the server itself: name it in the URL instead of the pooler, for this once",
            )
        await prepare(connection, options, statements, clock)
    finally:
        await connection.close()
    if pooled:
        _logger.warning(
            "connected through a pooler: no notifications, so jobs of other processes are looked "
            "for every half second; name the server itself in the URL for faster starts"
        )
    return Session(options, statements, clock, pooled=pooled)


async def is_pooled(connection: Connection, options: Options) -> bool:
    """Whether a pooler is in between: it makes up the number that a client is told."""
    if options.pooled is not None:
        return options.pooled
    try:
        rows = await connection.fetch("SELECT pg_backend_pid()", (), options.timeout)
    except Refusal as refusal:
        raise refusal.error from refusal
    return bool(rows[0][0] != connection.backend)


class Session:
    """One opened store on one event loop."""

    def __init__(
        self, options: Options, statements: Statements, clock: Clock, *, pooled: bool
    ) -> None:
        self._options = options
        self._statements = statements
        self._clock = clock
        self._pooled = pooled
        self._process = os.getpid()
        self._calls = Calls()
        self.pool: Pool = Pool(options, statements, clock, pooled=pooled, lost=self._lost)
        self._wakes = Wakes(clock)
        self._notifier = Notifier(self.pool, options.channel, self._calls, clock)
        self._listener = Listener(options, self._wakes, lambda: self.pool.backends, clock)
        self.heads: Heads = Heads(clock)
        self._vacuum = Vacuum(options, statements, clock, self.heads.stuck)
        # Two of them: a job with a unique key may have to wait for somebody's open transaction, on
        # one connection at most, and no other job with it.
        self._sharing = self._shared()
        self._sharing_unique = self._shared()

    def _shared(self) -> Sharing[Sequence[NewJob], list[Enqueued | Held]]:
        return Sharing(self._calls, self._enqueue_together, _TOGETHER)

    def _lost(self) -> None:
        # A listener only receives: it would not notice that its server is not the one any more.
        self._listener.renew()

    @property
    def inherited(self) -> bool:
        """Whether a parent process opened it."""
        return self._process != os.getpid()

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a call, which goes on when its caller is cancelled."""
        return await self._calls.run(call)

    async def put(self, call: Coroutine[Any, Any, T], earliest: datetime | None = None) -> T:
        """As `run`, for a call that may let jobs come; since when they are due: see `Heads.put`."""
        task = self._calls.start(call)
        task.add_done_callback(self.heads.put(earliest))
        return await asyncio.shield(task)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | Held]:
        """Store jobs as of now, in one round trip with whoever calls meanwhile."""
        sharing = self._sharing if enqueue.is_plain(jobs) else self._sharing_unique
        return await sharing.call(jobs, frozenset(job.id for job in jobs))

    async def _enqueue_together(
        self, batches: Sequence[Sequence[NewJob]]
    ) -> list[list[Enqueued | Held]] | None:
        ended = self.heads.put(enqueue.earliest(job for batch in batches for job in batch))
        try:
            answers = await enqueue.enqueue_together(self.pool, batches)
        finally:
            ended(None)
        self.wake()
        return answers

    def wake(self) -> None:
        """Something may have become claimable: tell everybody."""
        self._wakes.wake()
        self._notifier.note()

    def ended(self) -> None:
        """Jobs have ended; now and then the totals are brought up to date."""
        if random.random() * _FOLD_EVERY < 1:
            self._calls.start(self._fold())

    def wrote(self, versions: int) -> None:
        """So many jobs were claimed or settled: now and then their dead rows are removed."""
        self._vacuum.wrote(versions)

    async def _fold(self) -> None:
        try:
            await self.pool.fetch("fold", _FOLDED)
        except StoreError as error:
            _logger.debug("the totals were not folded", extra={"reason": str(error)})

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """See `Driver.wait`."""
        if not self._pooled:
            self._listener.start()

        async def claimable() -> bool:
            return await self.run(inspection.claimable(self.pool, queues))

        return await self._wakes.wait(timeout, claimable)

    async def lifeline(self, worker: str) -> Lifeline | None:
        """See `Driver.lifeline`. Through a pooler a session is nobody's."""
        if self._pooled:
            return None
        return await tie(worker, self._options, self._statements, self._clock)

    async def shorten(self, now: datetime | None) -> float | None:
        """See `Driver.shorten`."""
        rows = await self.run(self.pool.fetch("shorten", GRACE, now))
        seconds: float | None = rows[0][0]
        return seconds

    def keeper(self) -> Keeper:
        return Keeper(self._options, self._statements, self._clock, pooled=self._pooled)

    async def close(self) -> None:
        """Let what is in flight end, for a moment; then, or when cancelled, give up everything."""
        async with AsyncExitStack() as closing:  # the last one first
            # Dropped connections are closed on the next turn of the loop.
            closing.push_async_callback(self._clock.sleep, 0)
            closing.callback(self._wakes.wake)
            closing.push_async_callback(self._calls.cancel)
            closing.push_async_callback(self.pool.close)
            closing.push_async_callback(self._calls.settle, _CLOSE_TIMEOUT)
            closing.push_async_callback(self._vacuum.close)
            closing.push_async_callback(self._listener.close)
