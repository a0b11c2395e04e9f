"""Hints that something may have become claimable, from this process and from others.

Commits of this process are told directly. Those of others show as writes to the write-ahead log
(inotify), or where that cannot be had as a changed `data_version`, asked for every 20 ms. Hints may
lie, for one's own commits show as well; only latency depends on them. Nothing here touches the
database file itself.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable

from tenure.clock import Clock
from tenure.drivers.sqlite import inotify

__all__ = ["Wakes"]

_POLL = 0.02


class _Watch:
    """The waiters of one event loop. Used on that loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: str | None) -> None:
        self.loop = loop
        self.waiters: set[asyncio.Future[object]] = set()
        self._log = log
        self._descriptor: int | None = None

    @property
    def listening(self) -> bool:
        """Whether writes of other processes are noticed."""
        return self._descriptor is not None

    def listen(self) -> bool:
        """Begin to notice writes, where that can be had; whether it began just now."""
        if self._log is None or self._descriptor is not None:
            return False
        self._descriptor = inotify.watch(self._log)
        if self._descriptor is None:
            self._log = None
        return self._descriptor is not None

    def enter(self, waiter: asyncio.Future[object]) -> None:
        if not self.waiters and self._descriptor is not None:
            try:
                self.loop.add_reader(self._descriptor, self._noticed)
            except NotImplementedError:  # a loop that cannot watch descriptors
                self.close()
                self._log = None
        self.waiters.add(waiter)

    def leave(self, waiter: asyncio.Future[object]) -> None:
        self.waiters.discard(waiter)
        if not self.waiters and self._descriptor is not None and not self.loop.is_closed():
            self.loop.remove_reader(self._descriptor)

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _noticed(self) -> None:
        if self._descriptor is None:
            return
        seen = inotify.drain(self._descriptor)
        if seen:
            self.wake()
        if seen & inotify.ENDED:
            self.close()  # the log was removed; the next wait watches the new one

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if self.waiters and not self.loop.is_closed():
                self.loop.remove_reader(descriptor)
            os.close(descriptor)

    def __del__(self) -> None:
        # Its loop was to close it and has come to no further turn.
        if self._descriptor is not None:
            os.close(self._descriptor)


class Wakes:
    """All waiters of one opened store, on whatever loops."""

    def __init__(self, path: str | None, clock: Clock) -> None:
        """`path` of the database, or None where no other process can write to it."""
        self._alone = path is None
        # SQLite names the log after the file that a symbolic link leads to.
        self._log = None if path is None else f"{os.path.realpath(path)}-wal"
        self._clock = clock
        self._lock = threading.RLock()  # reentrant for the same reason as in clerk.py
        self._watches: dict[asyncio.AbstractEventLoop, _Watch] = {}
        self._closed = False

    def listen(self) -> None:
        """Begin to notice for the running event loop, so that its first wait need not lie."""
        self._watch(asyncio.get_running_loop()).listen()

    def notify(self) -> None:
        """Tell every waiter. From any thread."""
        for watch in self._all():
            if watch.waiters:
                try:
                    watch.loop.call_soon_threadsafe(watch.wake)
                except RuntimeError:
                    continue  # its loop was closed: nobody waits any more

    async def wait(self, timeout: float, version: Callable[[], Awaitable[int]]) -> bool:
        """Whether something may have happened since the call began; False after `timeout` s.

        `version` gives a number that changes with each commit of anybody.
        """
        watch = self._watch(asyncio.get_running_loop())
        if watch.listen():
            return True  # what was written up to now was not noticed, and may be committed yet
        waiter: asyncio.Future[object] = watch.loop.create_future()
        watch.enter(waiter)
        try:
            if watch.listening or self._alone:
                # Notices from before this call are left in place and end it at once. They must:
                # SQLite writes to the log first and commits later, so that a notice may be older
                # than this call while its commit is not.
                return await self._clock.wait(waiter, timeout)
            return await self._poll(waiter, timeout, version)
        finally:
            watch.leave(waiter)

    async def _poll(
        self,
        waiter: asyncio.Future[object],
        timeout: float,
        version: Callable[[], Awaitable[int]],
    ) -> bool:
        end = self._clock.monotonic() + timeout
        before = await version()
        while (left := end - self._clock.monotonic()) > 0:
            if await self._clock.wait(waiter, min(_POLL, left)) or await version() != before:
                return True
        return waiter.done()

    def close(self) -> None:
        """Tell every waiter and give up the descriptors, each on its own loop where that turns."""
        with self._lock:
            self._closed = True
            watches = list(self._watches.values())
            self._watches.clear()
        for watch in watches:
            _close(watch)

    def _all(self) -> list[_Watch]:
        with self._lock:
            return list(self._watches.values())

    def _watch(self, loop: asyncio.AbstractEventLoop) -> _Watch:
        with self._lock:
            ended = [other for other in self._watches if other.is_closed()]
            dropped = [self._watches.pop(other) for other in ended]
            watch = self._watches.get(loop)
            if self._closed:
                watch = _Watch(loop, None)  # of somebody who had not heard of it yet
            elif watch is None:
                watch = self._watches[loop] = _Watch(loop, self._log)
        for other in dropped:
            other.close()
        return watch


def _close(watch: _Watch) -> None:
    """Close on the watch's own loop, which may be another one or closed already."""

    def finish() -> None:
        watch.wake()
        watch.close()

    try:
        watch.loop.call_soon_threadsafe(finish)
    except RuntimeError:
        watch.close()  # the loop was closed: nobody else uses the watch
