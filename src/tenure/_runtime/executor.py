"""Runs one attempt at a time in each slot.

The only place in the package that catches BaseException. Each attempt has a task of its own with a
fresh copy of the worker's context; a plain `def` runs in a thread. What is recorded follows what
the handler really did: one that finishes while it is being cancelled has finished. What an end
makes of the job is in `ending.py`. It must never write to the store: outcomes go to the recorder.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Generator
from typing import Any

from tenure._runtime.completer import Completer
from tenure._runtime.ending import Ending, Endings
from tenure._runtime.failures import is_interrupt
from tenure._runtime.finished import Finished
from tenure._runtime.progress import ProgressWriter
from tenure._runtime.recorder import Recorder
from tenure._runtime.report import Reporter
from tenure._runtime.running_job import RunningJob
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Attempt, Prefetched, Slots, Stop
from tenure._runtime.threads import Threads
from tenure.clock import Clock, Timer
from tenure.codec import decode
from tenure.errors import (
    JobOverdue,
    LeaseLost,
)
from tenure.events import JobStarted, LeaseEnded
from tenure.handlers import HandlerSpec
from tenure.outcomes import Cancelled, Released
from tenure.types import Claim, Hold

__all__ = ["Executor"]

# How long a cancelled coroutine may take for its cleanup before it is called overdue.
_CLEANUP = 1.0
_LATE = "its lease had run out before its handler was called"


class Executor:
    """The executing half of one worker. All of it runs on the worker's event loop."""

    def __init__(
        self,
        settings: WorkerSettings,
        slots: Slots,
        recorder: Recorder,
        completer: Completer,
        progress: ProgressWriter,
        reporter: Reporter,
        clock: Clock,
        *,
        can_delay: bool,
        aborting: Callable[[], bool],
        interrupted: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self._slots = slots
        self._recorder = recorder
        self._completer = completer
        self._progress = progress
        self._reporter = reporter
        self._clock = clock
        self._aborting = aborting
        self._interrupted = interrupted
        self._loop = asyncio.get_running_loop()
        # As it was when the worker started: nothing that a handler sets leaks into the next job.
        self._context = contextvars.copy_context()
        self._threads = Threads(self._loop, "tenure-handler")
        self._endings = Endings(settings, reporter, clock, can_delay=can_delay)
        self._sweep_at = float("inf")
        self._timer: Timer | None = None
        self.kept_at = float("-inf")  # when the keeper last reached the store
        self.slot_freed: Callable[[], None] | None = None

    def start(self, claim: Claim, spec: HandlerSpec, sent: float, now: float) -> None:
        """Start the handler; the slot is taken from here on. `sent` is when it was asked for."""
        timeout = claim.job.timeout or spec.timeout or self._settings.job_timeout
        grace = self._settings.overdue_grace
        if grace is None:
            grace = max(timeout, self._settings.lease)
        attempt = Attempt(claim, spec, sent, started=now, timeout=timeout, grace=grace)
        self._slots.running[claim.hold] = attempt
        if attempt.deadline < self._sweep_at:
            self._sweep_at_latest(attempt.deadline)
        if self._reporter.listening:
            self._reporter.emit(JobStarted(job=claim.job, hold=claim.hold, attempt=claim.attempt))
        running = self._run(attempt)
        running.send(None)  # up to its first await, from where on it sees every cancellation
        attempt.task = self._loop.create_task(
            running, name=claim.job.id, context=self._context.copy()
        )

    # --- one attempt ----------------------------------------------------------------------------

    async def _run(self, attempt: Attempt) -> None:
        spec = attempt.spec
        try:
            await _FIRST_STEP
            if attempt.stop is not None:
                raise asyncio.CancelledError  # asked to stop before this first step
            if self._late(attempt):
                ending = Ending(Released(_LATE), "release_late_claim")
            else:
                payload = decode(attempt.claim.job.payload, self._settings.codec)
                arguments = self._arguments(attempt, payload)
                attempt.called = True
                if spec.is_async:
                    result = await spec.function(*arguments)
                else:
                    result = await self._call(attempt, arguments)
                ending = self._endings.returned(attempt, result)
        except BaseException as raised:
            self._raised(attempt, raised)
            return
        self._finish(attempt, ending)

    def _arguments(self, attempt: Attempt, payload: Any) -> tuple[Any, ...]:
        if not attempt.spec.wants_job:
            return (payload,)
        progress = attempt.progress = self._progress.begin(attempt.claim)
        job = attempt.job = RunningJob(attempt.claim, payload, self._completer.complete, progress)
        return (payload, job)

    def _late(self, attempt: Attempt) -> bool:
        """Whether its lease has run out before this first step, while the process was suspended.

        Or while other handlers blocked the loop; then the keeper has extended it meanwhile.
        """
        kept = self.kept_at if self.kept_at >= attempt.started else attempt.sent
        return self._clock.monotonic() - kept >= self._settings.lease

    def _raised(self, attempt: Attempt, raised: BaseException) -> None:
        judged = self._judge(attempt, raised)
        if judged is None:
            self._drop_progress(attempt)
            self._forget(attempt)
        else:
            self._finish(attempt, judged)

    async def _call(self, attempt: Attempt, arguments: tuple[Any, ...]) -> Any:
        """Call a plain function in a thread, and await what it may return to be awaited."""
        function, context = attempt.spec.function, contextvars.copy_context()
        answer = self._threads.call(function, arguments, context)
        attempt.in_thread = True
        while True:
            try:
                result = await asyncio.shield(answer)
                break
            except asyncio.CancelledError:
                # A thread cannot be interrupted: go on waiting for what it really does.
                if self._aborting():
                    raise
        attempt.in_thread = False
        if result.error is not None:
            raise _Raised(result.error)
        if inspect.isawaitable(result.value):
            return await result.value
        return result.value

    def _judge(self, attempt: Attempt, raised: BaseException) -> Ending | None:
        """What an exception in the attempt makes of the job; None: nothing is to be written."""
        if isinstance(raised, _Raised):
            return self._endings.raised(attempt, raised.error)
        if isinstance(raised, asyncio.CancelledError):
            if attempt.in_thread:
                return None  # its thread still runs: the job is left to its lease
            if attempt.stop is not None:
                return self._endings.stopped(attempt, attempt.stop)
            if self._aborting():
                return Ending(Released("worker aborted"), "release_after_shutdown")
        elif is_interrupt(raised):
            self._interrupted(raised)
            return Ending(Released("interrupted"), "release_after_shutdown")
        return self._endings.raised(attempt, raised)

    def _finish(self, attempt: Attempt, ending: Ending) -> None:
        seconds = self._clock.monotonic() - attempt.started
        if self._forget(attempt):
            self._recorder.submit(
                Finished(
                    attempt.claim,
                    ending.outcome,
                    ending.operation,
                    error=ending.error,
                    seconds=seconds,
                    within=None if attempt.job is None else attempt.job.completed,
                    progress=attempt.progress,
                )
            )

    def _forget(self, attempt: Attempt) -> bool:
        """Give the slot back; False where the worker had already given the attempt up."""
        known = self._slots.remove(attempt.claim.hold) is attempt
        attempt.task = None
        # While the host cancels everything, what waits for a slot is put back, not started.
        if known and self._slots.ready and self.slot_freed is not None and not self._aborting():
            self.slot_freed()
        self._slots.changed()
        return known

    def note_kept(self, now: float) -> None:
        """The keeper has extended every hold at this monotonic instant. Called from its thread."""
        self.kept_at = now

    # --- stopping attempts ----------------------------------------------------------------------

    def lose(self, hold: Hold) -> None:
        """The keeper found the hold lost: stop the handler, if it still runs."""
        attempt = self._slots.running.get(hold)
        if attempt is None:
            self._take_ready(hold)  # or it waits in the recorder, which will hear of it
            return
        if attempt.job is not None and attempt.job.completed is not None:
            # Its own commit may have ended the hold, the handler not have heard of it yet.
            self._completer.unless_committed(attempt.claim, lambda: self._lost(attempt))
        else:
            self._lost(attempt)

    def _lost(self, attempt: Attempt) -> None:
        hold = attempt.claim.hold
        if attempt.stop is Stop.LEASE_LOST or self._slots.running.get(hold) is not attempt:
            return
        self._reporter.emit(LeaseEnded(job=attempt.claim.job, hold=hold))
        self._reporter.report(LeaseLost(hold.job_id))
        # What was asked before no longer matters: nothing can be written under this hold.
        attempt.stop = Stop.LEASE_LOST
        self._drop_progress(attempt)
        self._interrupt(attempt)

    def cancel(self, hold: Hold) -> None:
        """Someone asked for the job to be cancelled."""
        attempt = self._slots.running.get(hold)
        if attempt is None:
            if (waiting := self._take_ready(hold)) is not None:
                outcome = Cancelled("cancel requested", started=False)
                self._recorder.submit(Finished(waiting.claim, outcome, "cancel"))
        elif attempt.stop is None:
            attempt.stop = Stop.CANCEL
            self._interrupt(attempt)

    def _take_ready(self, hold: Hold) -> Prefetched | None:
        """Take a prefetched claim out of the line, so that it is not started."""
        for waiting in self._slots.ready:
            if waiting.claim.hold == hold:
                self._slots.ready.remove(waiting)
                self._slots.changed()
                return waiting
        return None

    def stop_all(self) -> None:
        """The drain time is over: cancel whatever runs."""
        now = self._clock.monotonic()
        for attempt in list(self._slots.running.values()):
            if attempt.stop is None:
                # A deadline at this very instant comes first, whichever timer rang first.
                attempt.stop = Stop.TIMEOUT if attempt.deadline <= now else Stop.SHUTDOWN
            self._interrupt(attempt)

    def abort(self) -> None:
        """Cancel whatever runs and record nothing."""
        for attempt in self._slots.clear():
            self._drop_progress(attempt)
            self._tell(attempt)
            self._cancel_task(attempt)

    def close(self) -> None:
        """No attempt will be started any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._threads.close()

    def _interrupt(self, attempt: Attempt) -> None:
        """Cancel the handler, but not before what is ready in this turn of the loop has run."""
        self._tell(attempt)
        # If that is the end of the handler, its outcome counts.
        self._loop.call_soon(self._cancel_task, attempt)

    def _tell(self, attempt: Attempt) -> None:
        if attempt.job is not None:
            attempt.job.cancelled = True

    def _drop_progress(self, attempt: Attempt) -> None:
        if attempt.progress is not None:
            attempt.progress.drop()

    def _cancel_task(self, attempt: Attempt) -> None:
        if attempt.task is not None:
            attempt.task.cancel()

    # --- deadlines ------------------------------------------------------------------------------

    def _sweep_at_latest(self, instant: float) -> None:
        """One timer serves all deadlines: it rings at the earliest."""
        if self._timer is not None:
            self._timer.cancel()
        self._sweep_at = instant
        delay = max(0.0, instant - self._clock.monotonic())
        self._timer = self._clock.call_later(delay, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._sweep_at = float("inf")
        now = self._clock.monotonic()
        following = float("inf")
        for attempt in list(self._slots.running.values()):
            if not attempt.overdue and attempt.check_at <= now:
                self._overrun(attempt, now)
            if not attempt.overdue:
                following = min(following, attempt.check_at)
        if following < self._sweep_at:  # unless one that has just been started is due earlier
            self._sweep_at_latest(following)

    def _overrun(self, attempt: Attempt, now: float) -> None:
        """The deadline has passed: cancel, and tell when that does not help."""
        first = attempt.check_at == attempt.deadline
        if first:
            attempt.check_at = now + _CLEANUP
            if attempt.stop is None:
                attempt.stop = Stop.TIMEOUT
                self._interrupt(attempt)
        if not first or attempt.in_thread:
            self._slots.mark_overdue(attempt)
            job = attempt.claim.job
            left = self._slots.left
            error = JobOverdue(job.id, job.name, now - attempt.started, slots_left=left)
            self._reporter.report(error)
            if self._slots.replaces(attempt):
                # Its replacement takes a waiting claim, or a new one.
                if self._slots.ready and self.slot_freed is not None:
                    self.slot_freed()
                self._recorder.slots_freed()


class _FirstStep:
    """Awaited once, by what runs before its task does."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_FIRST_STEP = _FirstStep()


class _Raised(BaseException):
    """Carries what a handler raised in its thread past the loop that awaits it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
