"""Says that the worker is there, for people who look. Nothing depends on it.

Every 15 seconds while it runs anything, else every minute: where hints are commits, as in a SQLite
file, each report wakes all idle workers of the store. What was said stands for three times as long,
so that a lost report hides nobody, and a worker that was killed is not shown for ever.
"""

import asyncio
import os
import platform
import socket
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from random import random

from tenure._runtime.report import Reporter
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Slots
from tenure.clock import Clock
from tenure.driver import Driver
from tenure.errors import QueueError
from tenure.presence import WorkerInfo
from tenure.version import VERSION

__all__ = ["Presence"]

_INTERVAL = 15.0
_QUIET_TURNS = 4  # from one report to the next of a worker that runs nothing
_SHOWN_FOR = 3
_MOST_JOBS = 20


class Presence:
    """The reports of one worker."""

    def __init__(
        self,
        driver: Driver,
        settings: WorkerSettings,
        slots: Slots,
        reporter: Reporter,
        clock: Clock,
        claimed_at: Callable[[], datetime | None],
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._slots = slots
        self._reporter = reporter
        self._clock = clock
        self._claimed_at = claimed_at
        self._started_at = clock.now()
        self._host = socket.gethostname()
        self._one = asyncio.Lock()  # so that the last report is the last to arrive
        self._left = False
        self._said_running = False
        self._turns = _QUIET_TURNS  # since the last report

    async def turn(self) -> float:
        """Report, if it is time to; the seconds until the next turn."""
        async with self._one:
            running = bool(self._slots.running)
            due = running or self._said_running or self._turns >= _QUIET_TURNS
            if due and not self._left:
                await self._report(running)
            self._turns += 1
        return _INTERVAL * (1.0 - random() / 5)

    async def _report(self, running: bool) -> None:
        interval = _INTERVAL if running else _QUIET_TURNS * _INTERVAL
        try:
            await self._driver.report(self._info(), _SHOWN_FOR * interval)
        except QueueError as error:
            self._reporter.report(error)
            self._turns = _QUIET_TURNS  # the next turn tries again
        else:
            self._said_running = running
            self._turns = 0

    async def leave(self) -> None:
        """Be shown no more."""
        self._left = True
        async with self._one:
            try:
                await self._driver.report(self._info(), 0.0)
            except QueueError:
                return  # the last report runs out by itself; a shutdown has no more to say of it

    def _info(self) -> WorkerInfo:
        settings, running = self._settings, self._slots.running
        return WorkerInfo(
            id=settings.worker_id,
            name=settings.name,
            host=self._host,
            pid=os.getpid(),
            queues=settings.queue_names,
            concurrency=settings.concurrency,
            running=len(running),
            started_at=self._started_at,
            seen_at=self._clock.now(),
            jobs=tuple([hold.job_id for hold in islice(running, _MOST_JOBS)]),
            version=VERSION,
            python=platform.python_version(),
            claimed_at=self._claimed_at(),
        )
