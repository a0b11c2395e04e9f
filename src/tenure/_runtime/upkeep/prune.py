"""Deletes finished jobs that are beyond their retention, in small steps.

As often as there is something to delete, so that a store under load keeps its size, and hardly ever
where there is nothing. Every worker does so; two that meet only share the work.
"""

from random import random

from tenure._runtime.report import Reporter
from tenure.driver import Driver
from tenure.errors import QueueError
from tenure.types import Retention

__all__ = ["Pruner"]

_BATCH = 500  # what a store deletes in some milliseconds
_BUSY = 0.02  # seconds between full batches, for the others who write
_SHORTEST, _LONGEST = 1.0, 60.0


class Pruner:
    """The pruning loop of one worker."""

    def __init__(self, driver: Driver, retention: Retention, reporter: Reporter) -> None:
        self._driver = driver
        self._retention = retention
        self._reporter = reporter
        self._pause = _SHORTEST

    async def turn(self) -> float:
        """Delete one batch; the seconds until the next."""
        try:
            deleted = await self._driver.prune(self._retention, _BATCH)
        except QueueError as error:
            self._reporter.report(error)
            deleted = 0
        if deleted >= _BATCH:
            return _BUSY
        self._pause = _SHORTEST if deleted else min(_LONGEST, 2 * self._pause)
        return self._pause * (1.0 - random() / 5)
