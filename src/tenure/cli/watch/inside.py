"""The part in a worker process: a thread that says how the worker is when the program asks.

A thread of its own, so that it answers while a handler blocks the event loop, and says so. It asks
the store through the loop, and changes nothing.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import Any, Protocol

from tenure._runtime.handle import WorkerHandle
from tenure.cli.watch.terms import HEAD, Asked, Family, Told, length_of, read_asked, sent
from tenure.clock import Clock
from tenure.errors import QueueError
from tenure.queue import Queue

__all__ = ["Counting", "Inside"]

_BEAT = 0.5  # seconds between two signs of life of the event loop
_BLOCKED = 5.0  # without one for so long it is blocked
_STILL = 60.0  # no claim for so long beyond the poll interval, though one could be made
_LOOK_EVERY = 1.0  # seconds between two looks at the store, at least
_WAIT = 0.5  # for the answer of the look that a question starts
_SLOW = 3.0  # a look that takes longer has failed
_SAMPLING = 1.0  # what the metrics that the store must be asked for may take
_LAST_WORD = 0.5


class Counting(Protocol):
    """The metrics of the process."""

    def began(self, handle: WorkerHandle) -> None: ...

    async def look(self, queue: Queue) -> None:
        """Ask the store for what nothing in the process counts, unless it was just asked."""
        ...

    def families(self) -> Sequence[Family]: ...


class Inside:
    """Answers as long as the line is open. `stopping` says whether the process is to stop."""

    def __init__(self, line: socket.socket, stopping: Callable[[], bool], clock: Clock) -> None:
        line.set_inheritable(False)
        self._line = line
        self._sending = threading.Lock()
        self._stopping = stopping
        self._clock = clock
        self._running: _Running | None = None
        self._counting: Counting | None = None
        clock.spawn("tenure-watched", self._serve)

    def began(
        self, handle: WorkerHandle, queue: Queue, poll_interval: float, counting: Counting | None
    ) -> None:
        """The worker runs, on the running loop."""
        if counting is not None:
            counting.began(handle)
        self._counting = counting
        self._running = _Running(handle, queue, poll_interval, self._clock)
        self._running.beat()

    def over(self) -> None:
        """Say what was counted, for the last time; nothing is beside that."""
        if self._counting is None:
            return
        told = Told(number=0, families=self._counting.families())
        with suppress(OSError), self._sending:
            self._line.settimeout(_LAST_WORD)
            self._line.sendall(sent(told))

    # --- in the thread --------------------------------------------------------------------------

    def _serve(self) -> None:
        with suppress(OSError):  # the program is gone, of which others hear
            while (head := self._read(HEAD)) is not None:
                data = self._read(length_of(head))
                if data is None:
                    return
                answer = sent(self._told(read_asked(data)))
                with self._sending:
                    self._line.sendall(answer)

    def _read(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                part = self._line.recv(count - len(data))
            except TimeoutError:  # set by the last word; the process is about to end
                return None
            if not part:
                return None
            data += part
        return data

    def _told(self, asked: Asked) -> Told:
        running = self._running
        if running is None:
            return Told(number=asked.number, not_ready="its worker has not been started yet")
        families = None
        if asked.metrics and self._counting is not None:
            running.ask(self._counting.look(running.queue), _SAMPLING)
            families = self._counting.families()
        return running.told(asked.number, families, stopping=self._stopping())


class _Running:
    """A worker that runs, and its store."""

    def __init__(
        self, handle: WorkerHandle, queue: Queue, poll_interval: float, clock: Clock
    ) -> None:
        self.queue = queue
        self._handle = handle
        self._clock = clock
        self._patience = _STILL + poll_interval
        self._loop = asyncio.get_running_loop()
        self._beaten = clock.monotonic()
        self._look: Future[None] | None = None
        self._looked = float("-inf")
        self._problem = "its store has not been asked yet"

    def beat(self) -> None:
        """On the loop: it turns."""
        self._beaten = self._clock.monotonic()
        self._clock.call_later(_BEAT, self.beat)

    def ask(self, look: Coroutine[Any, Any, None], patience: float) -> None:
        """Have the loop do it, and wait a little for that; what fails is left as it is."""
        if (asking := self._posted(look)) is None:
            return
        try:
            asking.result(patience)
        except (QueueError, TimeoutError, CancelledError):
            asking.cancel()

    def told(self, number: int, families: Sequence[Family] | None, *, stopping: bool) -> Told:
        vitals = self._handle.vitals()
        store = "" if stopping else self._store()
        not_live = ""
        if (blocked := self._blocked()) > _BLOCKED:
            not_live = f"its event loop has not turned for {blocked:.0f} s"
        elif not (vitals.running or stopping):
            not_live = "its worker has stopped"
        elif vitals.running and not vitals.healthy:
            not_live = "its worker is unhealthy: a loop of it keeps failing, or no slot is left"
        elif not (store or vitals.problem) and vitals.still > self._patience:
            not_live = f"its worker could claim jobs, and has not for {vitals.still:.0f} s"
        not_ready = store
        if stopping:
            not_ready = "it is stopping"
        elif vitals.problem and not store:
            not_ready = f"its last claim failed: {vitals.problem}"
        elif not vitals.claiming and not store:
            not_ready = "its worker takes no jobs"
        return Told(
            number=number,
            not_live=not_live,
            not_ready=not_ready,
            slots=vitals.slots,
            used=vitals.used,
            families=families,
        )

    def _posted(self, look: Coroutine[Any, Any, None]) -> "Future[None] | None":
        """Let the loop do it; None where it is closed, or blocked for long."""
        if not self._loop.is_closed() and self._blocked() <= _BLOCKED:
            with suppress(RuntimeError):  # closed just now
                return asyncio.run_coroutine_threadsafe(look, self._loop)
        look.close()
        return None

    def _blocked(self) -> float:
        """For how long the loop has not turned; one that is closed need not."""
        return 0.0 if self._loop.is_closed() else self._clock.monotonic() - self._beaten

    # --- the store ------------------------------------------------------------------------------

    def _store(self) -> str:
        """What is wrong with the store, by a look that is as new as this question allows."""
        now = self._clock.monotonic()
        if self._look is None and now - self._looked >= _LOOK_EVERY:
            self._looked = now
            self._look = self._posted(self._ask_store())
        if self._look is None:
            return self._problem
        wait([self._look], _WAIT)
        if self._look.done():
            self._problem = _problem_of(self._look)
            self._look = None
        elif (waited := self._clock.monotonic() - self._looked) > _SLOW:
            return f"its store has not answered for {waited:.0f} s"
        return self._problem

    async def _ask_store(self) -> None:
        driver = await self.queue.driver()
        await driver.check()


def _problem_of(look: "Future[None]") -> str:
    if look.cancelled():
        return "its store could not be asked"
    error = look.exception()
    return "" if error is None else f"its store: {str(error) or type(error).__name__}"
