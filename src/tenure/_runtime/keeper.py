"""Extends the leases of running attempts, from a thread of its own.

The thread goes on while the event loop is blocked, through `keeper_handle()`, and tells of the
blocking. It reads the slots and never changes them: what it learns it posts to the loop. It stops
by itself when the loop is dead, so that a job never outlives the worker that runs it.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Sequence

from tenure._runtime.slots import Slots
from tenure.clock import Clock
from tenure.driver import Capability, Driver, KeeperHandle
from tenure.errors import LoopBlocked, QueueError, StoreUnavailable, WorkerTaskError
from tenure.types import Hold, Kept

__all__ = ["Keeper"]

_TICKS = 12  # a lease has twelve ticks: extended every fourth, the loop probed at each
_EXTEND_EVERY = 4

logger = logging.getLogger("tenure.keeper")


class Keeper:
    """The keeper of one worker. `start` and `stop` are called on the event loop."""

    def __init__(
        self,
        driver: Driver,
        lease: float,
        slots: Slots,
        clock: Clock,
        *,
        lost: Callable[[Hold], None],
        cancelled: Callable[[Hold], None],
        kept: Callable[[float], None],
        report: Callable[[QueueError], None],
    ) -> None:
        self._driver = driver
        self._lease = lease
        self._slots = slots
        self._clock = clock
        self._lost = lost
        self._cancelled = cancelled
        self._kept = kept
        self._report = report
        self._tick = lease / _TICKS
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.current_thread()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._deaths = 0
        self._probe: _Probe | None = None
        self._next_tick = clock.monotonic() + self._tick
        self._next_extend = clock.monotonic() + self._tick * _EXTEND_EVERY

    @property
    def healthy(self) -> bool:
        return self._deaths < 3

    def start(self) -> None:
        self._thread = self._clock.spawn("tenure-keeper", self._run)

    def stop(self, patience: float) -> "asyncio.Future[None] | None":
        """End the thread. The future is done when it has ended, or `patience` seconds later."""
        self._stop.set()
        if self._thread is None or not self._thread.is_alive():
            return None
        return self._loop.run_in_executor(None, self._thread.join, patience)

    # --- in the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        handle: KeeperHandle | None = None
        try:
            while not self._ended():
                self._clock.block(self._stop, max(0.0, self._next_tick - self._clock.monotonic()))
                if self._ended():
                    return
                try:
                    if handle is None:
                        handle = self._open()
                    self._turn(handle)
                except QueueError as error:
                    self._post(self._report, error)
                except Exception as error:
                    # A defect; leases must be kept all the same.
                    self._deaths += 1
                    death = WorkerTaskError("keeper", f"{type(error).__name__}: {error}")
                    death.__cause__ = error
                    self._post(self._report, death)
                self._next_tick = self._clock.monotonic() + self._tick
        finally:
            if handle is not None:
                handle.close()

    def _open(self) -> KeeperHandle:
        if Capability.KEEPER in self._driver.capabilities:
            return self._driver.keeper_handle()
        return _ThroughTheLoop(self._driver, self._loop, self._lease)

    def _ended(self) -> bool:
        return self._stop.is_set() or self._loop.is_closed() or not self._loop_thread.is_alive()

    def _turn(self, handle: KeeperHandle) -> None:
        self._watch_loop()
        now = self._clock.monotonic()
        if now < self._next_extend:
            return
        holds = self._slots.holds(now)
        if holds:
            try:
                answers = handle.extend(holds, self._lease)
            except QueueError as error:
                # Cancels nothing, however long it lasts; tried again at the next tick.
                self._post(self._report, error)
                return
            for hold, answer in zip(holds, answers, strict=True):
                if answer is Kept.LOST:
                    self._post(self._lost, hold)
                elif answer is Kept.CANCEL_REQUESTED:
                    self._post(self._cancelled, hold)
            if Kept.LOST in answers:
                self._post(self._kept, now)  # after those it was told to lose
            else:
                # At once: handlers that wait behind a blocked loop may start when it goes on.
                self._kept(now)
        self._deaths = 0
        self._next_extend = now + self._tick * _EXTEND_EVERY

    def _post(self, function: Callable[..., None], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, argument)
        except RuntimeError:
            self._stop.set()  # the loop was closed meanwhile

    # --- is the loop turning? -------------------------------------------------------------------

    def _watch_loop(self) -> None:
        """Send a probe through the loop, or see how long the last one has been waiting."""
        now = self._clock.monotonic()
        if self._probe is None:
            self._probe = _Probe(now)
            self._post(self._answer, self._probe)
        elif not self._probe.seen and now - self._probe.sent >= self._lease / 4:
            self._probe.look(self._loop, self._loop_thread, self._slots)
            logger.warning(
                "the event loop has been blocked for %.2f s",
                now - self._probe.sent,
                extra={"job_id": self._probe.job_id, "where": self._probe.where},
            )

    def _answer(self, probe: "_Probe") -> None:
        """On the loop: the probe has come through."""
        self._probe = None
        seconds = self._clock.monotonic() - probe.sent
        # A probe is sent up to a twelfth after the blocking began; a quarter means up to a third.
        if probe.seen or seconds >= self._lease / 4:
            self._report(LoopBlocked(probe.job_id, probe.name, seconds, probe.where))


class _Probe:
    """A question to the loop, and what was seen of it while it did not answer."""

    __slots__ = ("job_id", "name", "seen", "sent", "where")

    def __init__(self, sent: float) -> None:
        self.sent = sent
        self.seen = False
        self.job_id: str | None = None
        self.name: str | None = None
        self.where = ""

    def look(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread, slots: Slots) -> None:
        """Find the job whose task the loop is in, and the line."""
        self.seen = True
        task = asyncio.current_task(loop)
        for attempt in list(slots.running.values()):
            if task is not None and attempt.task is task:
                self.job_id = attempt.claim.job.id
                self.name = attempt.claim.job.name
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]  # documented
        frame = frames.get(thread.ident or 0)
        if frame is not None:
            code = frame.f_code
            self.where = f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"


class _ThroughTheLoop:
    """For drivers that cannot extend from another thread: asks the loop, while it turns."""

    def __init__(self, driver: Driver, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        self._driver = driver
        self._loop = loop
        self._patience = patience

    def extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        coroutine = self._extend(holds, lease)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:
            coroutine.close()
            raise StoreUnavailable(f"the event loop is closed: {error}") from error
        try:
            return future.result(self._patience)
        except TimeoutError:
            future.cancel()
            raise StoreUnavailable("the event loop is blocked", ambiguous=True) from None

    async def _extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        return await self._driver.extend(holds, lease)

    def close(self) -> None:
        pass
