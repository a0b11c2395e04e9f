"""One background loop, written once: interval, error backoff, restart and stopping.

A loop is a coroutine function `turn() -> seconds until the next turn`. What a turn raises, other
than its cancellation, is reported as `WorkerTaskError`; the loop goes on after a growing pause.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import random
from typing import Any

from tenure.clock import Clock
from tenure.errors import WorkerTaskError

__all__ = ["Backoff", "Loop", "first_of"]

# A loop that died this often without a good turn in between makes its worker unhealthy.
_UNHEALTHY_DEATHS = 3


class Backoff:
    """Pauses that double from `start` to `cap` seconds, each shortened by up to a half."""

    def __init__(self, start: float, cap: float) -> None:
        self._start = min(start, cap)
        self._cap = cap
        self._next = self._start

    def pause(self) -> float:
        pause = self._next * (1.0 - random() / 2)
        self._next = min(self._cap, self._next * 2)
        return pause

    def reset(self) -> None:
        self._next = self._start


class Loop:
    """Calls `turn` again and again until its task is cancelled."""

    def __init__(
        self,
        name: str,
        turn: Callable[[], Awaitable[float]],
        *,
        clock: Clock,
        report: Callable[[WorkerTaskError], None],
    ) -> None:
        self.name = name
        self._turn = turn
        self._clock = clock
        self._report = report
        self._backoff = Backoff(0.1, 5.0)
        self._deaths = 0

    @property
    def healthy(self) -> bool:
        return self._deaths < _UNHEALTHY_DEATHS

    async def run(self) -> None:
        while True:
            try:
                delay = await self._turn()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                # A defect, of ours or of a third-party driver. Each loop puts back what it had
                # taken before it lets an exception through, so that no job is forgotten.
                self._deaths += 1
                death = WorkerTaskError(self.name, f"{type(error).__name__}: {error}")
                death.__cause__ = error
                self._report(death)
                delay = self._backoff.pause()
            else:
                self._deaths = 0
                self._backoff.reset()
            if delay > 0:
                await self._clock.sleep(delay)


async def first_of(clock: Clock, timeout: float | None, *futures: "asyncio.Future[Any]") -> None:
    """Return when one of the futures is done or `timeout` seconds have passed. Cancels none."""
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(_: object) -> None:
        if not woken.done():
            woken.set_result(None)

    for future in futures:
        future.add_done_callback(wake)
    try:
        await clock.wait(woken, timeout)
    finally:
        for future in futures:
            future.remove_done_callback(wake)
