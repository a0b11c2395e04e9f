"""One store as its queue holds it: opened once for each event loop that needs it, closed for all.

Also the one place that repeats a call whose answer was lost.
"""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenure._runtime.loop import Backoff
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import RuntimeUnavailable, StoreUnavailable

__all__ = ["Store"]

T = TypeVar("T")

_REPEAT_FOR = 30.0  # seconds; a store knows a deleted id for twice as long


class Store:
    """Drivers by event loop. A shared driver serves them all; others get one each.

    `driver` is an unopened driver, or a function that makes one.
    """

    def __init__(self, driver: Driver | Callable[[], Driver], clock: Clock) -> None:
        self._build = None if isinstance(driver, Driver) else driver
        self._first = driver if isinstance(driver, Driver) else driver()
        self._first_taken = False
        self._opened: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = (
            weakref.WeakKeyDictionary()
        )
        self._clock = clock
        self.closed = False

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._first.capabilities

    @property
    def kind(self) -> str:
        """The name of the driver's class, for people."""
        return type(self._first).__name__

    async def driver(self) -> Driver:
        """The opened driver for the running event loop, opened now where it was not.

        Raises `RuntimeUnavailable` when closed, and where one driver cannot serve a second loop.
        """
        if self.closed:
            raise RuntimeUnavailable("the queue is closed; open it again with `await queue`")
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            opened = self._opened[loop] = _Opened(self._driver_for_loop())
        if not opened.ready:
            async with opened.lock:
                if not opened.ready:
                    await opened.driver.open()
                    opened.ready = True
        return opened.driver

    def _driver_for_loop(self) -> Driver:
        if Capability.SHARED in self.capabilities or not self._first_taken:
            self._first_taken = True
            return self._first
        if self._build is None:
            raise RuntimeUnavailable(
                "this queue is in use on another event loop; make a queue for each loop, or pass "
                "Queue a function that makes drivers"
            )
        return self._build()

    async def close(self) -> None:
        """Close the driver of every loop, each on its own loop where that still turns."""
        self.closed = True
        here = asyncio.get_running_loop()
        for loop, opened in list(self._opened.items()):
            if Capability.SHARED in self.capabilities or loop is here:
                await opened.driver.close()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(_close(opened.driver), loop)
                await asyncio.wrap_future(closing)
        self._opened.clear()
        self._first_taken = False

    async def repeat(self, call: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Call until there is an answer, as long as the last one may have been lost.

        Also says whether it was repeated. Only for calls that are safe to repeat. Raises what the
        call raises; `StoreUnavailable` is ambiguous once any of the tries was.
        """
        unsure = False
        end = self._clock.monotonic() + _REPEAT_FOR
        backoff = Backoff(0.05, 2.0)
        while True:
            try:
                return await call(), unsure
            except StoreUnavailable as error:
                unsure = unsure or error.ambiguous
                pause = backoff.pause()
                if not unsure or self._clock.monotonic() + pause >= end:
                    if unsure and not error.ambiguous:
                        raise StoreUnavailable(str(error), ambiguous=True) from error
                    raise
            await self._clock.sleep(pause)


class _Opened:
    """The driver of one event loop, and whether it is open."""

    __slots__ = ("driver", "lock", "ready")

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.lock = asyncio.Lock()
        self.ready = False


async def _close(driver: Driver) -> None:
    await driver.close()
