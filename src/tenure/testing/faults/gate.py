"""A gate before which calls wait, on event loops and in the keeper's thread alike.

It never gives up by itself: who closes it opens it.
"""

import asyncio
import threading

from tenure.clock import Clock

__all__ = ["Gate"]

_TURN = 3600.0  # seconds; how long a thread waits at a time, for it must name a bound


class Gate:
    """Closed until `open`, and open for good then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = threading.Event()
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        self._blocked = 0

    @property
    def holding(self) -> int:
        """How many wait now."""
        with self._lock:
            return 0 if self._opened.is_set() else len(self._waiting) + self._blocked

    def open(self) -> None:
        """Let all go on. Legal on any thread, and twice."""
        with self._lock:
            self._opened.set()
            waiting, self._waiting = self._waiting, {}
        for future, loop in waiting.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_release, future)

    async def wait(self) -> None:
        """Wait on the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self._opened.is_set():
                return
            self._waiting[future] = loop
        try:
            await future
        finally:
            with self._lock:
                self._waiting.pop(future, None)

    def block(self, clock: Clock) -> None:
        """Wait in the calling thread."""
        with self._lock:
            self._blocked += 1
        try:
            while not clock.block(self._opened, _TURN):
                pass
        finally:
            with self._lock:
                self._blocked -= 1


def _release(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
