"""Tells other processes that something may have become claimable.

After the commit and on another connection: a notification inside the writing transaction takes a
lock of the whole server at its commit, and made concurrent commits 2 to 4 times slower. The first
one goes out at once, those that follow share one every few milliseconds. Never with a payload.
"""

import logging

from tenure.clock import Clock
from tenure.drivers.postgres.gather import Calls
from tenure.drivers.postgres.pool import Runner
from tenure.errors import StoreError

__all__ = ["Notifier"]

_PAUSE = 0.005
_logger = logging.getLogger("tenure.postgres")


class Notifier:
    """What this process owes to those who listen."""

    def __init__(self, runner: Runner, channel: str, calls: Calls, clock: Clock) -> None:
        self._runner = runner
        self._channel = channel
        self._calls = calls
        self._clock = clock
        self._owed = False
        self._working = False

    def note(self) -> None:
        """Something was committed."""
        self._owed = True
        if not self._working:
            self._working = True
            self._calls.start(self._work())

    async def _work(self) -> None:
        try:
            while self._owed:
                self._owed = False
                try:
                    await self._runner.fetch("notify", self._channel)
                except StoreError as error:
                    # Those who wait also look for themselves.
                    _logger.debug("a notification was not sent", extra={"reason": str(error)})
                await self._clock.sleep(_PAUSE)
        finally:
            self._working = False
