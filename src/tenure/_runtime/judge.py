"""Judges what was claimed before anything starts: start it, put it back, or end it.

What is not started is put back or ended in the same moment, through the recorder. Must not claim,
and must not run a handler itself.
"""

from collections.abc import Mapping

from tenure._runtime.executor import Executor
from tenure._runtime.finished import Finished
from tenure._runtime.recorder import Recorder
from tenure._runtime.report import Reporter
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Prefetched, Slots
from tenure._runtime.unhandled import UnhandledNames
from tenure.clock import Clock
from tenure.driver import Capability
from tenure.errors import HandlerNotFound, JobFailed, QueueError
from tenure.handlers import HandlerSpec, nearest
from tenure.outcomes import Cancelled, Failed, Failure, Outcome, Released
from tenure.types import Claim

__all__ = ["Judge"]


class Judge:
    """What becomes of each claim of one worker. `capabilities` are the store's."""

    def __init__(
        self,
        capabilities: frozenset[Capability],
        settings: WorkerSettings,
        handlers: Mapping[str, HandlerSpec],
        slots: Slots,
        recorder: Recorder,
        executor: Executor,
        reporter: Reporter,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._handlers = handlers
        self._slots = slots
        self._recorder = recorder
        self._executor = executor
        self._reporter = reporter
        self._clock = clock
        self._can_release = Capability.RELEASE in capabilities
        self._can_delay = self._can_release and Capability.DELAY in capabilities
        self._unhandled = UnhandledNames()
        self._closed = False

    def judge(self, claim: Claim, sent: float, now: float) -> None:
        """Decide about one claim; `sent` is the monotonic instant at which it was asked for."""
        job = claim.job
        if self._closed:
            self._release(claim, "worker shutdown before dispatch", "release_claim_after_shutdown")
        elif now - sent >= self._settings.lease:
            self._release(
                claim, "the claim was answered after its lease had run out", "release_late_claim"
            )
        elif job.cancel_requested:
            self._end(claim, Cancelled("cancel requested", started=False), "cancel")
        elif claim.damage is not None:
            self._fail(claim, "damaged", f"the stored record is damaged: {claim.damage}")
        elif (spec := self._handlers.get(job.name)) is None:
            self._put_back_unhandled(claim)
        elif (problem := self._exhausted(claim, spec)) is not None:
            self._fail(claim, "stalled", problem)
        elif self._slots.may_start:
            self._executor.start(claim, spec, sent, now)
        else:
            self._slots.ready.append(Prefetched(claim, spec, sent))

    def start_ready(self) -> None:
        """Start prefetched claims while slots are free; put back those that waited too long."""
        while self._slots.ready and self._slots.may_start and not self._closed:
            waiting, now = self._slots.ready.popleft(), self._clock.monotonic()
            age = now - max(waiting.sent, self._executor.kept_at)
            if age >= self._settings.lease:
                self._release(
                    waiting.claim,
                    "its lease had run out before a slot was free",
                    "release_late_claim",
                )
            else:
                self._executor.start(waiting.claim, waiting.spec, waiting.sent, now)

    def _exhausted(self, claim: Claim, spec: HandlerSpec) -> str | None:
        """Why the job may not be started again, or None. Crashes and failures count apart."""
        if claim.stalls >= self._settings.max_stalls:
            return (
                f"stalled {claim.stalls} times: each time its worker was lost or its lease ran out"
            )
        bound = _attempts_bound(claim, spec)
        if bound is not None and claim.attempt > bound:
            return f"worker lost on attempt {claim.attempt - 1} of {bound}"
        return None

    def _put_back_unhandled(self, claim: Claim) -> None:
        now = self._clock.monotonic()
        name = claim.job.name
        delay = self._unhandled.delay(name, now)
        error = None
        if self._unhandled.should_report(name, now):
            error = HandlerNotFound(name, claim.job.id, nearest(name, self._handlers))
        if self._can_delay:
            self._end(claim, Released("no handler here", delay), "release_unhandled", error)
        else:
            failure = self._failure(claim, "no_handler", f"no handler is registered for {name!r}")
            self._end(claim, Failed(failure, started=False), "release_unhandled", error)

    def _release(self, claim: Claim, reason: str, operation: str) -> None:
        if self._can_release:
            self._end(claim, Released(reason), operation)

    def _fail(self, claim: Claim, kind: str, message: str) -> None:
        failure = self._failure(claim, kind, message)
        error = JobFailed(claim.job.id, claim.job.name, claim.attempt, failure)
        operation = "fail_stalled" if kind == "stalled" else "fail"
        self._end(claim, Failed(failure, started=False), operation, error)

    def _failure(self, claim: Claim, kind: str, message: str) -> Failure:
        return Failure(kind=kind, message=message, at=self._clock.now(), attempt=claim.attempt - 1)

    def _end(
        self, claim: Claim, outcome: Outcome, operation: str, error: QueueError | None = None
    ) -> None:
        self._recorder.submit(Finished(claim, outcome, operation, error=error))

    def close(self) -> None:
        """Start nothing more: what is claimed from here on, or waits for a slot, is put back."""
        self._closed = True
        while self._slots.ready:
            waiting = self._slots.ready.popleft()
            self._release(
                waiting.claim, "worker shutdown before dispatch", "release_claim_after_shutdown"
            )


def _attempts_bound(claim: Claim, spec: HandlerSpec) -> int | None:
    """The hard bound on starts, where one was given: at dispatch, else by the retry policy."""
    if claim.job.max_attempts is not None:
        return claim.job.max_attempts
    return spec.retry.max_attempts if spec.retry is not None else None
