"""One store as its queue holds it: opened once for each event loop that needs it, closed for all.

Also the one place that repeats a call whose answer was lost. May be used from any thread.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import TypeVar

from tenure._runtime.loop import Backoff
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.elsewhere import call_elsewhere
from tenure.errors import RuntimeUnavailable, StoreUnavailable

__all__ = ["Store"]

T = TypeVar("T")

_REPEAT_FOR = 30.0  # seconds; a store knows a deleted id for twice as long


class Store:
    """Drivers by event loop. A shared driver serves them all; others get one each.

    `driver` is an unopened driver, or a function that makes one. What a loop has open is closed
    with the store, or before that loop ends, if whoever ends it calls `shutdown_asyncgens()`, as
    `asyncio.run` does; what a loop had open that was closed without it is left to the collector.
    After a fork the child makes drivers of its own, and closes none of its parent's.
    """

    def __init__(self, driver: Driver | Callable[[], Driver], clock: Clock) -> None:
        self._build = None if isinstance(driver, Driver) else driver
        self._first = driver if isinstance(driver, Driver) else driver()
        self._first_taken_by: int | None = None  # a process
        # Of the two around it, by process: a thread of the parent may have held it at the fork.
        self._guards = {os.getpid(): threading.Lock()}
        self._opened: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._clock = clock
        self.closed: bool = False

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._first.capabilities

    @property
    def kind(self) -> str:
        """The name of the driver's class, for people."""
        return type(self._first).__name__

    @property
    def _shared(self) -> bool:
        return Capability.SHARED in self.capabilities

    @property
    def _lock(self) -> threading.Lock:
        return self._guards.setdefault(os.getpid(), threading.Lock())

    async def driver(self) -> Driver:
        """The opened driver for the running event loop, opened now where it was not.

        Raises `RuntimeUnavailable` when closed, and where one driver cannot serve a second loop.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop) or self._enter(loop)
        if not opened.ready:
            await self._open(opened)
        return opened.driver

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeUnavailable("the queue is closed; open it again with `await queue`")

    def _enter(self, loop: asyncio.AbstractEventLoop) -> "_Opened":
        with self._lock:
            self._check_open()
            for other in [other for other in self._opened if other.is_closed()]:
                del self._opened[other]
            opened = self._opened[loop] = _Opened(self._driver_for_loop())
            return opened

    def _driver_for_loop(self) -> Driver:
        # One that was closed is not opened again where another can be made: a call may still be on
        # its way through it.
        if self._shared or self._first_taken_by is None:
            self._first_taken_by = os.getpid()
            return self._first
        if self._build is None:
            raise RuntimeUnavailable(
                "this queue is in use on another event loop; make a queue for each loop, or pass "
                "Queue a function that makes drivers"
            )
        return self._build()

    async def _open(self, opened: "_Opened") -> None:
        async with opened.lock:
            if not opened.ready and not opened.ended:
                if not self._shared and opened.life is None:
                    opened.life = self._life(opened)
                    await anext(opened.life)
                await opened.driver.open()
                opened.ready = True
        if opened.ended:  # somebody closed the store meanwhile
            if not self._shared or self.closed:
                await self._close_here(opened)
            raise RuntimeUnavailable("the queue was closed while it was being opened")

    async def _life(self, opened: "_Opened") -> AsyncGenerator[None]:
        """Ends before its event loop does, which ends such generators while it can still turn."""
        try:
            yield
        finally:
            opened.life = None
            with self._lock:
                opened.ended = True
                for loop in [loop for loop, each in self._opened.items() if each is opened]:
                    del self._opened[loop]
            await self._close_driver(opened)

    async def close(self) -> None:
        """Close the driver of every loop, each on its own loop.

        One that belongs to a loop that does not turn now is closed when that loop ends.
        """
        here = asyncio.get_running_loop()
        with self._lock:
            self.closed = True
            # What a parent has opened is kept as it is: its loop only seems to turn here.
            closing = [
                each for each in self._opened.items() if self._shared or not each[1].inherited
            ]
            for loop, opened in closing:
                del self._opened[loop]
                opened.ended = True
        for loop, opened in closing:
            if self._shared or loop is here:
                await self._close_here(opened)
            elif loop.is_running():
                await call_elsewhere(loop, partial(self._close_here, opened), self._clock)

    async def _close_here(self, opened: "_Opened") -> None:
        await self._close_driver(opened)
        life, opened.life = opened.life, None
        if life is not None:
            await life.aclose()

    async def _close_driver(self, opened: "_Opened") -> None:
        if self._shared:  # its lock may be another loop's
            await opened.driver.close()
            return
        async with opened.lock:
            opened.ready = False
            await opened.driver.close()
        if self._build is None and self._first_taken_by == os.getpid():
            self._first_taken_by = None

    async def repeat(self, call: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Call until there is an answer, as long as the last one may have been lost.

        Also says whether it was repeated. Only for calls that are safe to repeat. Raises what the
        call raises; `StoreUnavailable` is ambiguous once any of the tries was. Nothing is repeated
        on a driver that was closed.
        """
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        unsure = False
        end = self._clock.monotonic() + _REPEAT_FOR
        backoff = Backoff(0.05, 2.0)
        while True:
            try:
                return await call(), unsure
            except StoreUnavailable as error:
                unsure = unsure or error.ambiguous
                pause = backoff.pause()
                closed = self.closed or self._opened.get(loop) is not opened
                if closed or not unsure or self._clock.monotonic() + pause >= end:
                    if unsure and not error.ambiguous:
                        raise StoreUnavailable(str(error), ambiguous=True) from error
                    raise
            await self._clock.sleep(pause)


class _Opened:
    """The driver of one event loop, whether it is open, and whether it is to be open no more."""

    __slots__ = ("_process", "driver", "ended", "life", "lock", "ready")

    def __init__(self, driver: Driver) -> None:
        self._process = os.getpid()
        self.driver = driver
        self.lock = asyncio.Lock()
        self.life: AsyncGenerator[None] | None = None
        self.ready = False
        self.ended = False

    @property
    def inherited(self) -> bool:
        """Whether the parent of a fork opened it."""
        return self._process != os.getpid()
