"""Those who wait for a hint that something may have become claimable.

Commits of this process tell them directly, those of others through the listener; without one, and
now and then with one, they look for themselves. Hints may lie: only latency depends on them.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

from tenure.clock import Clock
from tenure.errors import StoreError

__all__ = ["Wakes"]

# Seconds between looks. A notification may get lost: its sender died between the commit and the
# notice, or the network swallowed it without a word.
_LISTENING = 5.0
_POLLING = 0.5
_LONGEST = 2.0  # while the server is away


class Wakes:
    """The waiters of one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: set[asyncio.Future[object]] = set()
        self.listening = False

    def wake(self) -> None:
        """Tell every waiter."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout: float, claimable: Callable[[], Awaitable[bool]]) -> bool:
        """Whether something may have happened since the call began; False after `timeout` s."""
        waiter: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        end = self._clock.monotonic() + timeout
        pause = _POLLING
        try:
            while (left := end - self._clock.monotonic()) > 0:
                patience = _LISTENING if self.listening else random.uniform(pause / 2, pause)
                if await self._clock.wait(waiter, min(left, patience)):
                    return True
                if left <= patience:
                    return False
                try:
                    if await claimable():
                        return True
                    pause = _POLLING
                except StoreError:
                    # The claim that follows will say what is wrong.
                    pause = min(pause * 2, _LONGEST)
            return waiter.done()
        finally:
            self._waiters.discard(waiter)
