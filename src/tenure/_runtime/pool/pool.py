"""The places of one worker's pool, and who gets the next free one.

All of it runs on the worker's event loop. It starts no process itself: each place has a thread for
that. It must not know what an answer makes of a job.
"""

import asyncio
import locale
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import util

from tenure._runtime.pool.place import Place, Told
from tenure._runtime.pool.process import Context
from tenure._runtime.pool.terms import Setup
from tenure.clock import Clock
from tenure.errors import QueueError, RuntimeUnavailable
from tenure.process_pool import Prelude, ProcessPool, importable

__all__ = ["NoProcess", "Pool"]

_REPORT_EVERY = 60.0


class NoProcess(Exception):
    """None of the pool's processes can be started at present."""


class Pool:
    """At most `concurrency` places, since there are never more attempts at once."""

    def __init__(
        self,
        options: ProcessPool,
        handlers: Iterable[str],
        concurrency: int,
        prelude: Prelude | None,
        clock: Clock,
        report: Callable[[QueueError], None],
    ) -> None:
        self._clock = clock
        self._report = report
        self._reported = ("", float("-inf"))
        self._idle: dict[Place, None] = {}  # the newest last
        self._waiting: deque[asyncio.Future[Place]] = deque()
        self._refusals: dict[Place, str] = {}  # of places that have no process
        self._ended = asyncio.get_running_loop().create_future()
        self._closed = False
        initializer = options.initializer
        setup = Setup(
            prelude=prelude,
            initializer=None if initializer is None else importable("initializer", initializer),
            handlers=tuple(sorted(set(handlers))),
            locale=_locale(),
        )
        context = _context(options.start_method)
        told = Told(self._ready, self._lost, self._refused, self._place_ended)
        size = min(options.size or _cpus(), concurrency)
        self._places = [Place(n + 1, context, setup, options, told) for n in range(size)]
        self._living = set(self._places)
        # Else the interpreter would wait for the processes as it ends, and they for it.
        self._at_exit = util.Finalize(None, _close, args=(self._places,), exitpriority=100)

    def start(self) -> None:
        """Start every process."""
        for place in self._places:
            place.start()

    @property
    def broken(self) -> bool:
        """Whether no process can be started, whichever place tries."""
        return len(self._refusals) == len(self._places)

    async def take(self) -> Place:
        """A place whose process waits for a job, as soon as there is one, in the order of asking.

        Raises `NoProcess`, also later, while none can be started.
        """
        if self.broken:
            raise NoProcess(next(iter(self._refusals.values())))
        if self._idle:
            return self._idle.popitem()[0]
        waiting: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._ready(waiting.result())
            raise
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def give_back(self, place: Place) -> None:
        """A place that was taken and is not needed."""
        self._ready(place)

    def close(self) -> "asyncio.Future[None]":
        """End all processes; the future is done when they and their threads have ended."""
        if not self._closed:
            self._closed = True
            self._at_exit.cancel()
            _close(self._places)
        return self._ended

    # --- what the places tell -------------------------------------------------------------------

    def _ready(self, place: Place) -> None:
        self._refusals.pop(place, None)
        if place.busy or self._closed:
            return  # it was asked before it was known that its process had been replaced
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(place)
                return
        self._idle[place] = None

    def _lost(self, place: Place) -> None:
        self._idle.pop(place, None)

    def _refused(self, place: Place, why: str) -> None:
        self._lost(place)
        self._refusals[place] = why
        text, at = self._reported
        now = self._clock.monotonic()
        if why != text or now - at >= _REPORT_EVERY:
            self._reported = (why, now)
            self._report(
                RuntimeUnavailable(
                    "a process for handlers could not be started, and is tried again after longer "
                    f"and longer pauses up to 30 s: {why}"
                )
            )
        if self.broken:
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_exception(NoProcess(why))
            self._waiting.clear()

    def _place_ended(self, place: Place) -> None:
        self._living.discard(place)
        if not self._living and not self._ended.done():
            self._ended.set_result(None)


def _close(places: Sequence[Place]) -> None:
    for place in places:
        place.close()


def _context(start_method: str | None) -> Context:
    if start_method == "forkserver":
        return multiprocessing.get_context("forkserver")
    return multiprocessing.get_context("spawn")


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _locale() -> str | None:
    try:
        return locale.setlocale(locale.LC_ALL)
    except locale.Error:
        return None
