"""Runs one attempt at a time in each slot.

The only place in the package that catches BaseException. Each attempt has a task of its own with a
fresh copy of the worker's context; how a handler is called is in `invocation.py`. What is recorded
follows what the handler really did: one that finishes while it is being cancelled has finished.
What an end makes of the job is in `ending.py`. It must never write to the store: outcomes go to the
recorder.
"""

import asyncio
import contextvars
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from tenure._runtime.completer import Completer
from tenure._runtime.deadlines import Deadlines
from tenure._runtime.ending import Ending, Endings
from tenure._runtime.failures import is_interrupt
from tenure._runtime.finished import Finished
from tenure._runtime.invocation import Invocations, RaisedInThread
from tenure._runtime.progress import ProgressWriter
from tenure._runtime.recorder import Recorder
from tenure._runtime.report import Reporter
from tenure._runtime.resources import Resources
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Attempt, Prefetched, Slots, Stop
from tenure.clock import Clock
from tenure.codec import decode
from tenure.errors import LeaseLost
from tenure.events import JobStarted, LeaseEnded
from tenure.handlers import HandlerSpec
from tenure.outcomes import Cancelled, Released
from tenure.types import Claim, Hold

if TYPE_CHECKING:
    from tenure._runtime.pool.calls import ProcessCalls

__all__ = ["Executor"]

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
        resources: Resources,
        *,
        can_delay: bool,
        aborting: Callable[[], bool],
        interrupted: Callable[[BaseException], None],
        processes: "ProcessCalls | None" = None,
    ) -> None:
        self._settings = settings
        self._slots = slots
        self._recorder = recorder
        self._completer = completer
        self._reporter = reporter
        self._clock = clock
        self._aborting = aborting
        self._interrupted = interrupted
        self._loop = asyncio.get_running_loop()
        # As it was when the worker started: nothing that a handler sets leaks into the next job.
        self._context = contextvars.copy_context()
        self._invocations = Invocations(
            self._loop,
            completer,
            progress,
            settings.surroundings.middleware,
            resources,
            processes,
            aborting,
        )
        self.endings = Endings(settings, reporter, clock, can_delay=can_delay)
        self._processes = processes
        self._deadlines = Deadlines(
            slots, reporter, clock, interrupt=self._interrupt, replaced=self._replaced
        )
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
        self._deadlines.add(attempt)
        if self._reporter.listening:
            self._reporter.emit(JobStarted(job=claim.job, hold=claim.hold, attempt=claim.attempt))
        running = self._run(attempt)
        running.send(None)  # up to its first await, from where on it sees every cancellation
        attempt.task = self._loop.create_task(
            running, name=claim.job.id, context=self._context.copy()
        )

    # --- one attempt ----------------------------------------------------------------------------

    async def _run(self, attempt: Attempt) -> None:
        try:
            await _FIRST_STEP
            if attempt.stop is not None:
                raise asyncio.CancelledError  # asked to stop before this first step
            if self._late(attempt):
                ending = Ending(Released(_LATE), "release_late_claim")
            else:
                payload = decode(attempt.claim.job.payload, self._settings.codec)
                if self._processes is not None and attempt.spec.process is not None:
                    ending = await self._in_process(self._processes, attempt, payload)
                else:
                    result = await self._invocations.begin(attempt, payload)
                    ending = self.endings.returned(attempt, result)
        except BaseException as raised:
            self._raised(attempt, raised)
            return
        self._finish(attempt, ending)

    async def _in_process(
        self, processes: "ProcessCalls", attempt: Attempt, payload: Any
    ) -> Ending:
        """Its time counts once a process is free; what is put back before was not started."""
        async with processes.place(attempt, self.endings) as without:
            if without is not None:
                return without
            if self._late(attempt):
                return Ending(Released(_LATE), "release_late_claim")
            attempt.begin(self._clock.monotonic())
            self._deadlines.add(attempt)
            result = await self._invocations.begin(attempt, payload)
            return self.endings.returned(attempt, result)

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

    def _judge(self, attempt: Attempt, raised: BaseException) -> Ending | None:
        """What an exception in the attempt makes of the job; None: nothing is to be written."""
        if isinstance(raised, RaisedInThread):
            return self.endings.raised(attempt, raised.error)
        if isinstance(raised, asyncio.CancelledError):
            if attempt.in_thread:
                return None  # its thread still runs: the job is left to its lease
            if attempt.stop is not None:
                return self.endings.stopped(attempt, attempt.stop)
            if self._aborting():
                return Ending(Released("worker aborted"), "release_after_shutdown")
        elif is_interrupt(raised):
            self._interrupted(raised)
            return Ending(Released("interrupted"), "release_after_shutdown")
        return self.endings.raised(attempt, raised)

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
        self._deadlines.close()
        self._invocations.close()

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

    def _replaced(self) -> None:
        """The replacement of an overdue attempt takes a waiting claim, or a new one."""
        if self._slots.ready and self.slot_freed is not None:
            self.slot_freed()
        self._recorder.slots_freed()


class _FirstStep:
    """Awaited once, by what runs before its task does."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_FIRST_STEP = _FirstStep()
