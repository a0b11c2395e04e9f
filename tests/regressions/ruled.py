"""A store whose time is told by a clock of the test's, also where it has a clock of its own."""

import inspect
from datetime import datetime
from typing import Any

import tenure
from tenure.clock import SystemClock
from tenure.driver import Driver

__all__ = ["Hands", "ruled"]


class Hands(SystemClock):
    """A wall clock that is set by hand. Waits go by the real time."""

    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


def ruled(driver: Driver, clock: tenure.Clock) -> Any:
    """The driver, with `now` given to every call that takes it."""
    return _Ruled(driver, clock)


class _Ruled:
    def __init__(self, driver: Driver, clock: tenure.Clock) -> None:
        self._driver = driver
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driver, name)
        if not inspect.iscoroutinefunction(found):
            return found
        if "now" not in inspect.signature(found).parameters:
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            return found(*arguments, **{"now": self._clock.now(), **options})

        return call
