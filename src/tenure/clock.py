"""The passing of time, as a value that is handed in.

Wall time is for stores and people, monotonic time for durations, and the two never mix. Everything
that waits does so through a `Clock`, so that a test can move wall time, monotonic time and every
timer together (`tenure.testing.ManualClock`). The only other module that may touch `time` or
`asyncio.sleep` is the runtime's loop.
"""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

__all__ = ["Clock", "SystemClock", "Timer"]


class Timer(Protocol):
    """A pending call; `cancel` is legal at any time, also after it fired."""

    def cancel(self) -> None: ...


class Clock(ABC):
    """What the runtime and the drivers know of time."""

    @abstractmethod
    def now(self) -> datetime:
        """Wall time, aware, UTC. May step."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds that only grow and that include the time a machine was suspended, if it can."""

    @abstractmethod
    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back on the running event loop after `delay` seconds."""

    @abstractmethod
    def block(self, event: threading.Event, timeout: float) -> bool:
        """Block the calling thread until the event is set (True) or `timeout` passed (False)."""

    @abstractmethod
    def spawn(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Start a daemon thread that waits on this clock; it never keeps the interpreter alive."""

    async def sleep(self, delay: float) -> None:
        """Wait `delay` seconds on the running event loop."""
        done = asyncio.get_running_loop().create_future()
        await self.wait(done, delay)

    async def wait(self, future: "asyncio.Future[Any]", timeout: float | None) -> bool:
        """Wait until the future is done (True) or `timeout` seconds passed (False).

        The future is neither cancelled nor asked for its result. None waits without a bound.
        """
        if future.done():
            return True
        woken = asyncio.get_running_loop().create_future()

        def wake(_: object = None) -> None:
            if not woken.done():
                woken.set_result(None)

        timer = None if timeout is None else self.call_later(max(0.0, timeout), wake)
        future.add_done_callback(wake)
        try:
            await woken
        finally:
            future.remove_done_callback(wake)
            if timer is not None:
                timer.cancel()
        return future.done()


# CLOCK_BOOTTIME goes on while the machine sleeps, so that a lease is seen to have run out then.
_MONOTONIC: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock(Clock):
    """The real time of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic() if _MONOTONIC is None else time.clock_gettime(_MONOTONIC)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)

    def block(self, event: threading.Event, timeout: float) -> bool:
        return event.wait(timeout)

    def spawn(self, name: str, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread
