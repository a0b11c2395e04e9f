"""Waiting for jobs to end: who waits for which, and one look at the store for all of them.

A worker of the same queue says what it has settled, so that whoever waits for that is woken at
once. What ends elsewhere is found by looking: one task for each event loop on which somebody waits,
a few jobs at a time. Nothing is told that the store does not say, and where nobody waits nothing
is kept and nothing runs.
"""

import asyncio
import heapq
import itertools
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from tenure.clock import Clock
from tenure.driver import Driver
from tenure.errors import RuntimeUnavailable
from tenure.states import TERMINAL
from tenure.types import Job

__all__ = ["Waits"]

# A job is looked at again after a sixteenth of the time that it has been waited for, so that a
# result is found little later than it was there: every 100 ms after 1.6 s, some 90 looks in all
# until it is once a second. Seconds: never sooner than the first, never later than the second.
_SOONEST, _LATEST, _SHARE = 0.01, 1.0, 1 / 16
# What all who wait on a loop ask of the store together: looks in a second, in one go, at once.
# A thousand who wait took 5 % of one core at this rate, on a SQLite file.
_RATE, _BATCH, _AT_ONCE = 500.0, 32, 8


class Waits:
    """Those who wait for jobs of one queue, on any event loop. `settled` may be called anywhere."""

    def __init__(self, driver: Callable[[], Awaitable[Driver]], clock: Clock) -> None:
        self._driver = driver
        self._clock = clock
        # Each loop adds and removes only its own; other threads take a copy, which is one step.
        self._watches: dict[asyncio.AbstractEventLoop, _Watch] = {}

    @property
    def anyone(self) -> bool:
        """Whether anybody waits."""
        return bool(self._watches)

    def settled(self, job_ids: Sequence[str]) -> None:
        """These jobs may have ended: look at those that somebody waits for."""
        self._each(lambda watch: watch.settled(job_ids))

    def close(self) -> None:
        """The queue is being closed: nobody waits any longer."""
        self._each(lambda watch: watch.fail())

    def _each(self, tell: "Callable[[_Watch], None]") -> None:
        here = _running_loop()
        for loop, watch in list(self._watches.items()):
            if watch.process != os.getpid():
                self._watches.pop(loop, None)  # whoever waited did so in the parent of a fork
            elif loop is here:
                tell(watch)
            else:
                with suppress(RuntimeError):  # closed meanwhile, and nobody waits there
                    loop.call_soon_threadsafe(tell, watch)

    async def end(self, job_id: str, timeout: float | None) -> Job[bytes] | None:
        """The job, once it has ended or after `timeout` seconds; None when there is none."""
        driver = await self._driver()
        until = None if timeout is None else self._clock.monotonic() + timeout
        watch = self._watch(driver)
        wait = watch.enter(job_id)  # before the first look, so that no end falls between the two
        try:
            job = await driver.get(job_id)
            if _over(job):
                return job
            left = None if until is None else until - self._clock.monotonic()
            if left is None or left > 0:
                watch.follow(wait)
                if await self._clock.wait(wait.end, left):
                    return wait.end.result()
                job = await driver.get(job_id)
            return job
        finally:
            await self._leave(watch, wait)

    def _watch(self, driver: Driver) -> "_Watch":
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop)
        if watch is None or watch.driver is not driver:
            watch = self._watches[loop] = _Watch(driver, self._clock, loop)
        return watch

    async def _leave(self, watch: "_Watch", wait: "_Wait") -> None:
        watch.leave(wait)
        if not watch.empty:
            return
        if self._watches.get(watch.loop) is watch:
            del self._watches[watch.loop]
        task = watch.stop()
        # Where the host has closed the loop under us, nothing can be awaited any more.
        if task is not None and not watch.loop.is_closed():
            await asyncio.wait([task])


class _Wait:
    """One job that somebody waits for; `end` is the job as it ended, None where it is gone."""

    __slots__ = ("began", "end", "followed", "job_id", "waiting")

    def __init__(self, job_id: str, began: float, loop: asyncio.AbstractEventLoop) -> None:
        self.job_id = job_id
        self.began = began
        self.waiting = 0
        self.followed = False
        self.end: asyncio.Future[Job[bytes] | None] = loop.create_future()


class _Watch:
    """The jobs that are waited for on one event loop, and the task that looks at them."""

    def __init__(self, driver: Driver, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.driver = driver
        self.loop = loop
        self.process = os.getpid()
        self._clock = clock
        self._waiting = 0
        self._waits: dict[str, _Wait] = {}
        self._settled: dict[str, _Wait] = {}
        self._due: list[tuple[float, int, _Wait]] = []
        self._order = itertools.count()
        self._rung = loop.create_future()
        self._task: asyncio.Task[None] | None = None

    # --- those who wait -------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        return self._waiting == 0

    def enter(self, job_id: str) -> _Wait:
        wait = self._waits.get(job_id)
        if wait is None:
            wait = self._waits[job_id] = _Wait(job_id, self._clock.monotonic(), self.loop)
        wait.waiting += 1
        self._waiting += 1
        return wait

    def follow(self, wait: _Wait) -> None:
        """The first look found that the job has not ended: look again, and again."""
        if wait.followed or wait.end.done():
            return
        wait.followed = True
        self._schedule(wait)
        self._ring()
        if self._task is None:
            self._task = self.loop.create_task(self._look_on(), name="tenure-waits")

    def leave(self, wait: _Wait) -> None:
        self._waiting -= 1
        wait.waiting -= 1
        if wait.waiting == 0:
            self._forget(wait)

    def stop(self) -> "asyncio.Task[None] | None":
        """End the task; it is returned to be awaited."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        return task

    def fail(self) -> None:
        """Let every wait end with the error that the queue was closed."""
        for wait in list(self._waits.values()):
            closed = f"the queue was closed while job {wait.job_id} was waited for"
            self._end(wait, RuntimeUnavailable(closed))

    def settled(self, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            wait = self._waits.get(job_id)
            if wait is not None:
                self._settled[job_id] = wait
                self._ring()

    # --- looking --------------------------------------------------------------------------------

    async def _look_on(self) -> None:
        """Look at what was settled at once, and at the rest when it is due, at a bounded rate."""
        clock = self._clock
        rested = clock.monotonic()
        while True:
            self._rung = self.loop.create_future()
            settled = self._take_settled()
            due = self._take_due() if clock.monotonic() >= rested else []
            if due:
                rested = clock.monotonic() + len(due) / _RATE
            await self._look(settled + due)
            for wait in due:
                if not wait.end.done():
                    self._schedule(wait)
            await clock.wait(self._rung, self._pause(rested))

    def _take_settled(self) -> list[_Wait]:
        taken = list(itertools.islice(self._settled.values(), _BATCH))
        for wait in taken:
            del self._settled[wait.job_id]
        return taken

    def _take_due(self) -> list[_Wait]:
        now = self._clock.monotonic()
        taken: list[_Wait] = []
        while self._due and len(taken) < _BATCH and self._due[0][0] <= now:
            wait = heapq.heappop(self._due)[2]
            if wait.waiting and not wait.end.done():
                taken.append(wait)
        return taken

    def _pause(self, rested: float) -> float | None:
        """Seconds until there is something to look at; None until the bell rings."""
        if self._settled:
            return 0.0
        if not self._due:
            return None
        return max(self._due[0][0], rested) - self._clock.monotonic()

    async def _look(self, waits: Sequence[_Wait]) -> None:
        left = iter(waits)

        async def some() -> None:
            for wait in left:
                await self._look_at(wait)

        if len(waits) == 1:
            await some()
        elif waits:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(waits))):
                    group.create_task(some())

    async def _look_at(self, wait: _Wait) -> None:
        try:
            job = await self.driver.get(wait.job_id)
        except Exception as error:  # whatever it is, it is theirs who wait, and not the task's end
            self._end(wait, error)
        else:
            if _over(job):
                self._end(wait, job)

    def _schedule(self, wait: _Wait) -> None:
        now = self._clock.monotonic()
        pause = min(_LATEST, max(_SOONEST, (now - wait.began) * _SHARE))
        heapq.heappush(self._due, (now + pause, next(self._order), wait))

    def _end(self, wait: _Wait, end: "Job[bytes] | Exception | None") -> None:
        self._forget(wait)
        if wait.end.done():
            return
        if isinstance(end, Exception):
            wait.end.set_exception(end)
            wait.end.exception()  # nobody is left to read it where all have given up
        else:
            wait.end.set_result(end)

    def _forget(self, wait: _Wait) -> None:
        """Whoever comes to wait from now on waits anew."""
        if self._waits.get(wait.job_id) is wait:
            del self._waits[wait.job_id]
        if self._settled.get(wait.job_id) is wait:
            del self._settled[wait.job_id]

    def _ring(self) -> None:
        if not self._rung.done():
            self._rung.set_result(None)


def _over(job: Job[bytes] | None) -> bool:
    return job is None or job.state in TERMINAL


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
