"""A clock that stands still until a test moves it.

Moving it moves wall time, monotonic time, timers on the event loop and the timed waits of threads
together, in order of their instants. Nothing here waits for real time, but for threads that are at
work and for the event loop to come to rest.
"""

import asyncio
import heapq
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tenure.clock import Clock, Timer

__all__ = ["ManualClock", "real_moment"]

_START = datetime(2030, 1, 1, tzinfo=UTC)
# The event loop is at rest when nothing was ready for three turns in a row (a turn asks once what
# other threads and descriptors have brought). A loop that does not show what is ready gets as many
# turns as are longer than any chain of steps in the runtime between two waits.
_QUIET_TURNS = 3
_TURNS = 60
_MOST_TURNS = 2000
_THREAD_BUDGET = 10.0


@dataclass(order=True, slots=True)
class _Entry:
    at: float
    order: int
    fire: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock(Clock):
    """Time as an argument: `await clock.advance(30)` lets thirty seconds pass.

    `advance` must be awaited on the event loop under test. A thread started by `spawn` is known to
    the clock: `advance` lets it finish what it wakes up for, and come back to `block`, before it
    goes on. `settle` waits until the loop is at rest; `barrier` adds a coroutine function that it
    awaits each time, for work outside the loop (a read of a store with a thread of its own, say).
    """

    def __init__(self, start: datetime = _START) -> None:
        self._start = start  # of wall time, moved by its steps
        self._elapsed = 0.0
        self._timers: list[_Entry] = []
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._working: set[int] = set()
        self._barriers: list[Callable[[], Awaitable[object]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._add(delay, callback)

    def block(self, event: threading.Event, timeout: float) -> bool:
        """Wait for the event, or until the clock has been moved past `timeout`."""
        me = threading.get_ident()
        passed = threading.Event()
        timer = self._add(timeout, lambda: self._release(me, passed))
        with self._lock:
            self._working.discard(me)
        while not (event.is_set() or passed.is_set()):
            passed.wait(0.002)  # a poll, since the event may be set by anybody
        timer.cancel()
        return event.is_set()

    def spawn(self, name: str, run: Callable[[], None]) -> threading.Thread:
        def tracked() -> None:
            try:
                run()
            finally:
                with self._lock:
                    self._working.discard(threading.get_ident())

        thread = threading.Thread(target=tracked, name=name, daemon=True)
        with self._lock:
            thread.start()
            assert thread.ident is not None
            self._working.add(thread.ident)
        return thread

    def barrier(self, wait: Callable[[], Awaitable[object]]) -> None:
        """Let `settle` await `wait()` as well, again and again until its result stays the same.

        `wait` returns when what was asked of a store before has been answered, and gives a mark of
        how much has been asked so far.
        """
        self._barriers.append(wait)

    def step_wall(self, seconds: float) -> None:
        """Let the wall clock jump, as an administrator would; no time passes."""
        self._start += timedelta(seconds=seconds)

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass: fire what falls due, in order, and settle after each instant."""
        end = self._elapsed + seconds
        await self.settle()
        while True:
            with self._lock:
                while self._timers and self._timers[0].cancelled:
                    heapq.heappop(self._timers)
                if not self._timers or self._timers[0].at > end:
                    break
                entry = heapq.heappop(self._timers)
                self._pass(entry.at)
            entry.fire()
            await self.settle()
        self._pass(end)
        await self.settle()

    async def step(self) -> bool:
        """Go to the instant of the next timer, whenever that is; False where there is none."""
        with self._lock:
            waiting = [timer.at for timer in self._timers if not timer.cancelled]
        if waiting:
            await self.advance(min(waiting) - self._elapsed)
        return bool(waiting)

    async def settle(self) -> None:
        """Wait until the event loop, and what the barriers stand for, have nothing more to do."""
        before: list[object] | None = None
        for _ in range(_MOST_TURNS):
            await self._rest()
            marks = [await barrier() for barrier in self._barriers]
            await self._rest()
            if marks == before or not marks:
                return
            before = marks

    async def _rest(self) -> None:
        deadline = time.monotonic() + _THREAD_BUDGET
        await _quiet()
        while self._working:
            if time.monotonic() > deadline:
                raise TimeoutError("a thread woken by the clock did not come back to it")
            await asyncio.sleep(0.0005)
            if not self._working:
                await _quiet()

    def _add(self, delay: float, fire: Callable[[], None]) -> _Entry:
        with self._lock:
            entry = _Entry(self._elapsed + max(0.0, delay), next(self._order), fire)
            heapq.heappush(self._timers, entry)
            return entry

    def _release(self, thread: int, passed: threading.Event) -> None:
        with self._lock:
            self._working.add(thread)
        passed.set()

    def _pass(self, instant: float) -> None:
        """Go to an instant exactly: adding up what lies between would gather rounding errors."""
        self._elapsed = max(self._elapsed, instant)


async def real_moment() -> None:
    """Let a millisecond of real time pass, for what other threads and the real world do."""
    await asyncio.sleep(0.001)


async def _quiet() -> None:
    # asyncio's own loops keep what is ready in a deque; there is no public way to ask for it.
    ready: object = getattr(asyncio.get_running_loop(), "_ready", None)
    quiet = 0
    for turn in range(_MOST_TURNS):
        await asyncio.sleep(0)
        if ready is None:
            if turn >= _TURNS:
                return
        else:
            quiet = 0 if ready else quiet + 1
            if quiet >= _QUIET_TURNS:
                return
