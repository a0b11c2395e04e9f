"""Starts a worker's loops, keeps them running, and ends them in order.

Running, draining (no more claims), cancelling (what still runs is cancelled and put back), stopped.
Owns every task and the keeper's thread; nothing of it survives `stopped`, but for handlers that
cannot be interrupted.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from tenure._runtime.abandoned import settle_abandoned
from tenure._runtime.ending import Ending
from tenure._runtime.failures import describe
from tenure._runtime.loop import Backoff
from tenure._runtime.parts import Parts
from tenure._runtime.recorder import Awaited
from tenure._runtime.report import ErrorBuffer, Reporter
from tenure._runtime.resources import Resources
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Slots
from tenure._runtime.vitals import Stillness, Vitals, claimed_at
from tenure.beside import Lifeline
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import HookFailed, QueueError, RuntimeUnavailable, StoreUnavailable
from tenure.events import Observer
from tenure.handlers import HandlerSpec
from tenure.types import Hold

__all__ = ["Lifecycle"]

# Between the end of the drain time and the promised second after it: what is left for handlers to
# give way and for their outcomes to be written, before they are abandoned.
_CANCEL_BUDGET = 0.6
_LEAVE_BUDGET = 0.1
_END_BUDGET = 0.2


class Lifecycle:
    """One run of a worker, from `start` to `stopped`. Used on the event loop that made it."""

    def __init__(
        self,
        settings: WorkerSettings,
        handlers: Mapping[str, HandlerSpec],
        open_driver: Callable[[], Awaitable[Driver]],
        clock: Clock,
        observers: Sequence[Observer],
        awaited: Awaited,
    ) -> None:
        self.settings = settings
        self.buffer: ErrorBuffer = ErrorBuffer()
        self.reporter: Reporter = Reporter(self.buffer, observers)
        self._resources = Resources(settings.surroundings, self.reporter)
        self._handlers = handlers
        self._open_driver = open_driver
        self._clock = clock
        self._awaited = awaited
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._slots = Slots(settings.concurrency, settings.prefetch, settings.replacement_slots)
        self._tasks: set[asyncio.Task[None]] = set()
        self._parts: Parts | None = None
        self._stillness = Stillness(clock)
        self._abandoned: list[tuple[Hold, Ending | None]] = []
        self.cut_short: int = 0
        self._lifeline: Lifeline | None = None
        self._changed = asyncio.Event()
        self._drain_until: float | None = None
        self._aborted = False
        self._claims = True
        self._ending = False
        self._interrupt: BaseException | None = None
        self._main: asyncio.Task[None] | None = None
        self.stopped: asyncio.Event = asyncio.Event()

    # --- what the handle asks -------------------------------------------------------------------

    @property
    def healthy(self) -> bool:
        """Whether no loop has died three times in a row, and something can still be started."""
        return self._slots.left > 0 and (self._parts is None or self._parts.healthy)

    def vitals(self) -> Vitals:
        parts, slots, clock = self._parts, self._slots, self._clock
        running = self.running
        claimer = None if parts is None else parts.claimer
        return Vitals(
            running=running,
            claiming=running and claimer is not None and not claimer.closed,
            healthy=self.healthy,
            slots=slots.capacity,
            used=len(slots.running),
            overdue=len(slots.overdue),
            claimed_at=None if claimer is None else claimed_at(claimer, clock),
            still=0.0 if claimer is None else self._stillness.seconds(claimer, slots),
            problem="" if claimer is None else claimer.problem,
            dropped_errors=self.buffer.dropped,
        )

    async def release_abandoned(self) -> int:
        if self._parts is not None:
            await settle_abandoned(self._parts.driver, self._abandoned, self.reporter, self._clock)
        return len(self._abandoned)

    @property
    def running(self) -> bool:
        """Whether it has not stopped; a forked child has nothing of its parent's run."""
        return not self.stopped.is_set() and self._process == os.getpid()

    def start(self) -> None:
        self._main = self._spawn(self._run(), "tenure-worker")
        # Not the last lines of `_run`: it may be cancelled before its first step, or while it ends.
        self._main.add_done_callback(self._ended)

    def _ended(self, _: "asyncio.Task[None]") -> None:
        self.buffer.close()
        self.stopped.set()
        if self._interrupt is not None:
            # From a callback it leaves the loop as a Ctrl-C does, and no task is left with it.
            raise self._interrupt

    async def shutdown(self, drain: float) -> None:
        """Stop in order; a later call with less time shortens the drain of an earlier one."""
        self.request_stop(drain)
        await self.stopped.wait()

    def request_stop(self, drain: float) -> None:
        until = self._clock.monotonic() + drain
        if self._drain_until is None or until < self._drain_until:
            self._drain_until = until
        if self._parts is not None:
            # At once: what is put back now must not be claimed again here.
            self._parts.claimer.close()
        self._changed.set()

    def stop_claiming(self) -> None:
        """Claim no more, for the rest of the run; nothing else changes."""
        self._claims = False
        if self._parts is not None:
            self._parts.claimer.close()

    async def queue_closed(self) -> None:
        """The queue is being closed under the running worker."""
        self.reporter.report(
            RuntimeUnavailable(
                "the queue was closed while this worker ran on it; the worker was shut down"
            )
        )
        await self.shutdown(0.0)

    def abort(self) -> None:
        """Stop at once: handlers are cancelled, nothing is recorded, leases run out."""
        if self._ending or self.stopped.is_set():
            return  # it ends already, in a moment that is bounded
        self._aborted = True
        if self._parts is not None:
            self._parts.executor.abort()
        for task in self._tasks:
            task.cancel()

    # --- the run --------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            self._spawn(self._start(), "tenure-start")
            await self._stop_requested()
            if self._parts is not None:
                await self._drain(self._parts)
                await self._leave(self._parts)
        except asyncio.CancelledError:
            # The host ends its loop, or `abort`. Not ours to swallow, but jobs go back first.
            if not self._aborted:
                await self._host_cancelled()
            raise
        finally:
            # A host that closes its loop under the worker drops this coroutine where it stands:
            # then nothing can be awaited any more, and the keeper's thread ends by itself.
            if not self._loop.is_closed():
                await self._end()

    async def _start(self) -> None:
        """Open the store, for as long as it takes, and begin; stop where that can never be."""
        backoff = Backoff(self.settings.poll_interval, 4.0)
        while True:
            try:
                driver = await self._open_driver()
                await self._tie(driver)
                await self._resources.start()
                if self._drain_until is None:
                    self._parts = self._build(driver)
                    self._parts.start()
                    if not self._claims:
                        self._parts.claimer.close()
                return
            except StoreUnavailable as error:
                self.reporter.report(error)
            except QueueError as error:
                self.reporter.report(error)
                self.request_stop(0.0)
                return
            except Exception as error:
                # A defect of the driver, or no thread to be had. No job has been taken yet.
                failure = RuntimeUnavailable(f"the worker could not start: {describe(error)}")
                failure.__cause__ = error
                self.reporter.report(failure)
                self.request_stop(0.0)
                return
            await self._clock.sleep(backoff.pause())

    async def _tie(self, driver: Driver) -> None:
        """Let the store see when this process ends, if it can; without it leases do."""
        if Capability.LIFELINE in driver.capabilities:
            try:
                self._lifeline = await driver.lifeline(self.settings.worker_id)
            except QueueError as error:
                self.reporter.report(error)

    def _build(self, driver: Driver) -> Parts:
        return Parts(
            driver,
            self.settings,
            self._handlers,
            self._slots,
            self.reporter,
            self._clock,
            self._resources,
            awaited=self._awaited,
            spawn=self._spawn,
            aborting=self._aborting,
            interrupted=self._interrupted,
        )

    async def _stop_requested(self) -> None:
        while self._drain_until is None:
            self._changed.clear()
            await self._changed.wait()

    async def _drain(self, parts: Parts) -> None:
        """Let running handlers finish, cancel the rest, write what is left, within the bound."""
        self._slots.watch = self._changed.set
        await self._settle(parts, self._drain_left)
        if not self._idle():
            self.cut_short = len(self._slots.running)
            parts.executor.stop_all()
        await self._settle(parts, self._budget())
        self._aborted = True
        self._abandoned = parts.abandon()

    async def _leave(self, parts: Parts) -> None:
        """Be shown no more, if the store answers at once."""
        if parts.presence is not None:
            left = self._spawn(parts.presence.leave(), "tenure-leave")
            await self._clock.wait(left, _LEAVE_BUDGET)

    async def _settle(self, parts: Parts, left: Callable[[], float]) -> None:
        """Wait until nothing is running or unwritten, as long as there is time left.

        A claim whose answer was lost is asked for once more, to put back what it took.
        """
        parts.claimer.recover()
        while not self._idle() and (timeout := left()) > 0:
            await self._wait_changed(timeout)
            parts.claimer.recover()

    def _idle(self) -> bool:
        return self._slots.empty

    def _drain_left(self) -> float:
        assert self._drain_until is not None
        return self._drain_until - self._clock.monotonic()

    def _budget(self) -> Callable[[], float]:
        end = self._clock.monotonic() + _CANCEL_BUDGET
        return lambda: end - self._clock.monotonic()

    async def _wait_changed(self, timeout: float) -> None:
        self._changed.clear()
        waiting = self._loop.create_task(self._changed.wait())
        try:
            await self._clock.wait(waiting, timeout)
        finally:
            waiting.cancel()

    async def _host_cancelled(self) -> None:
        """Put back what the host's cancellation interrupted, if there is time."""
        if self._parts is None:
            return
        self._slots.watch = self._changed.set
        self._parts.claimer.close()
        # The loops were cancelled together with us; the writing one is still needed.
        writer = self._loop.create_task(self._parts.write_rest())
        try:
            await self._settle(self._parts, self._budget())
        finally:
            writer.cancel()
            await asyncio.wait([writer])

    async def _end(self) -> None:
        """Stop every loop and thread of ours."""
        self._aborted = True
        self._ending = True
        others: list[asyncio.Future[Any]] = [t for t in self._tasks if t is not self._main]
        if self._parts is not None:
            others += self._parts.close(_END_BUDGET)
        for task in self._tasks - {self._main}:
            task.cancel()
        leaving: asyncio.Task[None] | None = None
        if self._lifeline is not None:
            # From now on leases rule: something may still run here, in a thread.
            leaving = self._loop.create_task(self._lifeline.close())
            others.append(leaving)
        if others:
            await asyncio.wait(others, timeout=_END_BUDGET)
        if leaving is not None:
            leaving.cancel()
        if self._resources.used:
            await self._put_away()

    async def _put_away(self) -> None:
        """Close what handlers shared, in what is left of the drain time or at least a moment."""
        closing = self._loop.create_task(self._resources.close(), name="tenure-stop")
        left = _END_BUDGET if self._drain_until is None else max(_END_BUDGET, self._drain_left())
        if not await self._clock.wait(closing, left):
            closing.cancel()
            await asyncio.wait([closing], timeout=_END_BUDGET)
            self.reporter.report(HookFailed("stopping the worker's resources", "TimeoutError"))

    # --- tasks ----------------------------------------------------------------------------------

    def _spawn(self, coroutine: Coroutine[object, object, None], name: str) -> "asyncio.Task[None]":
        task = self._loop.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _aborting(self) -> bool:
        """Whether a cancellation is the end of the worker: ours, or the host's of all its tasks."""
        return self._aborted or any(task.cancelling() for task in self._tasks)

    def _interrupted(self, error: BaseException) -> None:
        """A real Ctrl-C hit a handler: put all jobs back, then let the host have it."""
        self._interrupt = error
        self.request_stop(0.0)
