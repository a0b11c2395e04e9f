"""The life of an opened store: its clerks and hints in this process, their end, and forks.

Every call finds what belongs to its own process. A child of a fork gets new clerks with new
connections for files at its first call; what it inherited is left alone, neither used nor closed.
An engine that is dropped without `close` ends its threads and warns.
"""

import asyncio
import os
import warnings
import weakref
from typing import TypeVar

from tenure.clock import Clock
from tenure.drivers.sqlite.clerk import Clerk
from tenure.drivers.sqlite.connection import Settings
from tenure.drivers.sqlite.fork import prepare_for_forks
from tenure.drivers.sqlite.replies import Call, LoopReply, ThreadReply
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.drivers.sqlite.wake import Wakes
from tenure.errors import QueueError, RuntimeUnavailable, StoreError, StoreUnavailable

__all__ = ["Engine"]

R = TypeVar("R")

_MARGIN = 5.0  # beyond the busy timeout, for the calls that are served before


class _Local:
    """What one process has open. Its threads start with the first call of each."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.wakes = Wakes(None if settings.in_memory else settings.path, clock)
        self.writer = Clerk(
            "tenure-sqlite-writer",
            settings,
            clock,
            begin="BEGIN IMMEDIATE",
            committed=self.wakes.notify,
        )
        # A database in memory is its connection, so there is just the one.
        self.reader = (
            self.writer
            if settings.in_memory
            else Clerk("tenure-sqlite-reader", settings, clock, begin="BEGIN")
        )

    @property
    def used(self) -> bool:
        return self.writer.used or self.reader.used

    async def close(self) -> None:
        """Finish what is queued, and end the threads without blocking the loop.

        When this is cancelled they end as well, and nobody waits for it.
        """
        self.wakes.close()
        try:
            await _ended(self.reader)
        finally:
            self.writer.stop()  # last, where there is time: it leaves the file tidy
        await _ended(self.writer)

    def abandon(self) -> None:
        self.wakes.close()
        for clerk in (self.reader, self.writer):
            clerk.stop()


class Engine:
    """Runs operations on the store, from any thread and any event loop."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        prepare_for_forks()
        self._settings = settings
        self._clock = clock
        self._opened = False
        # By process id, so that a child finds nothing of its own where its parent had something.
        # `setdefault` on it needs no lock, which a fork could leave locked.
        self._locals: dict[int, _Local] = {}
        dropped = weakref.finalize(self, _dropped, self._locals, settings.path)
        dropped.atexit = False  # threads that end with the interpreter are no leak

    async def open(self) -> None:
        """Connect and make the schema. Legal when already open."""
        was_open, self._opened = self._opened, True
        try:
            await self.write(_nothing)
            self._local().wakes.listen()
        except QueueError:
            if not was_open:
                await self.close()
            raise

    async def close(self) -> None:
        """Legal twice, and before `open`."""
        self._opened = False
        local = self._locals.pop(os.getpid(), None)
        if local is not None:
            await local.close()

    async def write(self, operation: Operation[R]) -> R:
        """Run the operation in a transaction of the writer; returns after its commit."""
        return await self._through(self._local().writer, operation)

    async def read(self, operation: Operation[R]) -> R:
        """Run the operation on a snapshot that never waits for writers."""
        return await self._through(self._local().reader, operation)

    def write_blocking(self, operation: Operation[R]) -> R:
        """As `write`, from a thread, and ahead of all that waits."""
        reply = ThreadReply()
        self._local().writer.submit(Call(operation, reply), urgent=True)
        if not reply.wait(self._settings.busy_timeout + _MARGIN):
            raise StoreUnavailable(
                f"the writer of {self._settings.path!r} did not answer within its busy timeout; "
                "the call may still be done",
                ambiguous=True,
            )
        if reply.error is not None:
            raise reply.error
        result: R = reply.result
        return result

    async def wait(self, timeout: float) -> bool:
        """Whether something may have become claimable since the call began."""
        return await self._local().wakes.wait(timeout, lambda: self.read(_data_version))

    async def _through(self, clerk: Clerk, operation: Operation[R]) -> R:
        reply = LoopReply(asyncio.get_running_loop())
        clerk.submit(Call(operation, reply))
        result: R = await reply.future
        return result

    def _local(self) -> _Local:
        if not self._opened:
            raise RuntimeUnavailable("the store is not open; `await driver.open()` first")
        local = self._locals.get(os.getpid())
        if local is None:
            if self._locals and self._settings.in_memory:
                raise StoreError(
                    "a store in memory belongs to the process that opened it; use a file, or open "
                    "a store of its own after the fork"
                )
            fresh = _Local(self._settings, self._clock)
            local = self._locals.setdefault(os.getpid(), fresh)
        return local


async def _ended(clerk: Clerk) -> None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ended.done():
            ended.set_result(None)

    def from_clerk() -> None:
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:
            return  # the loop was closed: nobody waits for the end any more

    clerk.stop(from_clerk)
    await ended
    clerk.join()  # it has nothing left to do


def _dropped(locals_: dict[int, _Local], path: str) -> None:
    # In a child, only what the child itself has opened: the rest is its parent's.
    local = locals_.get(os.getpid())
    if local is not None and local.used:
        local.abandon()
        warnings.warn(f"the store {path!r} was not closed", ResourceWarning, stacklevel=2)


def _nothing(transaction: Transaction) -> None:
    """An operation that only makes sure of a connection and its schema."""


def _data_version(transaction: Transaction) -> int:
    version: int = transaction.execute("PRAGMA data_version").fetchone()[0]
    return version
