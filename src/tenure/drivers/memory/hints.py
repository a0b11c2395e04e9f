"""Who waits for something to become claimable, on whatever event loop; told of every change."""

import asyncio
import threading

from tenure.clock import Clock

__all__ = ["Hints"]


class Hints:
    """Wakes all waiters at each `tell`. Safe from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiters: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    async def wait(self, timeout: float) -> bool:
        """True when told since the call began, False after `timeout` seconds."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._waiters[waiter] = loop
        try:
            return await self._clock.wait(waiter, timeout)
        finally:
            with self._lock:
                self._waiters.pop(waiter, None)

    def tell(self) -> None:
        """Wake whoever waits now."""
        with self._lock:
            waiters, self._waiters = self._waiters, {}
        for waiter, loop in waiters.items():
            try:
                loop.call_soon_threadsafe(_wake, waiter)
            except RuntimeError:
                continue  # its loop was closed: nobody waits any more


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
