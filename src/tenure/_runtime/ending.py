"""What the end of an attempt makes of its job: an outcome, and an error for people.

Decides, and neither waits nor writes.
"""

from asyncio import CancelledError
from datetime import timedelta

from msgspec import Struct

from tenure._runtime.completer import NotCommitted
from tenure._runtime.failures import describe, failure_of, is_interrupt
from tenure._runtime.report import Reporter
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Attempt, Stop
from tenure._runtime.unhandled import UnhandledNames
from tenure.clock import Clock
from tenure.codec import encode
from tenure.errors import (
    InvalidConfiguration,
    InvalidJob,
    JobFailed,
    JobPanicked,
    JobTimedOut,
    QueueError,
    RuntimeUnavailable,
    SerializationError,
    UnknownKey,
)
from tenure.handlers import ErrorRule, RetryRule
from tenure.intake import check_delay
from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retried,
    Snoozed,
)
from tenure.retry import RetryPolicy
from tenure.verdicts import Cancel, Retry, Snooze

__all__ = ["Ending", "Endings"]


class Ending(Struct, frozen=True):
    """An outcome; the name of its write in errors; what is reported once it has been applied."""

    outcome: Outcome
    operation: str
    error: QueueError | None = None


_COMPLETED = Ending(Completed(), "complete")


class Endings:
    """Judges how the attempts of one worker ended.

    `can_delay` says whether the store can put a job back for some time.
    """

    def __init__(
        self, settings: WorkerSettings, reporter: Reporter, clock: Clock, *, can_delay: bool
    ) -> None:
        self._settings = settings
        self._reporter = reporter
        self._clock = clock
        self._can_delay = can_delay
        self._without_key = UnhandledNames()
        self._without_process = UnhandledNames()
        self._default_retry = RetryPolicy()

    def returned(self, attempt: Attempt, result: object) -> Ending:
        """The handler returned."""
        if attempt.job is not None and attempt.job.completed is not None:
            # As it will turn out, unless the completion is found to be committed.
            return self.raised(attempt, NotCommitted())
        if result is None:
            return _COMPLETED
        if isinstance(result, Snooze):
            return self._snoozed(attempt, result)
        binding = attempt.spec.binding
        try:
            encoded = encode(
                result if binding is None else binding.result(result),
                root="result",
                limit=self._settings.result_limit,
                codec=self._settings.codec,
            )
        except SerializationError as error:
            refused = SerializationError(f"the result cannot be stored: {error}", path=error.path)
            failure = self._failure(attempt, refused, "serialization")
            return Ending(Failed(failure), "fail", _failed(attempt, failure))
        return Ending(Completed(encoded), "complete")

    def raised(self, attempt: Attempt, error: BaseException) -> Ending:
        """The handler raised, or its payload did not decode: then it was not called."""
        if not attempt.called and isinstance(error, SerializationError):
            if isinstance(error, UnknownKey):
                return self._locked(attempt, error)
            return self._undecodable(attempt, error)
        if isinstance(error, Cancel):
            return Ending(Cancelled(error.reason), "cancel")
        elsewhere = attempt.elsewhere
        if elsewhere is not None and elsewhere.error is error:
            return self._failed(attempt, error, elsewhere.failure)
        panic = not isinstance(error, Exception | CancelledError)
        return self._failed(
            attempt, error, self._failure(attempt, error, "panic" if panic else "error")
        )

    def _failed(self, attempt: Attempt, error: BaseException, failure: Failure) -> Ending:
        panic = failure.kind == "panic"
        report: QueueError = _failed(attempt, failure)
        if panic:
            report = JobPanicked(attempt.claim.job.id, failure.message)
        elif failure.kind == "serialization":
            return Ending(Failed(failure), "fail", report)  # of a result, made in a process
        operation = "complete_within" if isinstance(error, NotCommitted) else None
        delay = self._retry_delay(attempt, error)
        if delay is not None:
            return Ending(Retried(delay, failure), operation or "retry", report)
        final = "fail_after_panic" if panic else "fail"
        return Ending(Failed(failure), operation or final, report)

    def stopped(self, attempt: Attempt, stop: Stop) -> Ending | None:
        """The handler was cancelled by us and gave way. None where nothing is to be written."""
        match stop:
            case Stop.TIMEOUT:
                error = JobTimedOut(attempt.claim.job.id, attempt.timeout)
                failure = self._failure(attempt, error, "timeout")
                delay = self._retry_delay(attempt, TimeoutError())
                if delay is not None:
                    return Ending(Retried(delay, failure), "retry", error)
                return Ending(Failed(failure), "fail_after_timeout", error)
            case Stop.SHUTDOWN:
                return Ending(Released("worker shutdown"), "release_after_shutdown")
            case Stop.CANCEL:
                return Ending(Cancelled("cancel requested"), "cancel")
            case Stop.LEASE_LOST:
                return None

    def _snoozed(self, attempt: Attempt, snooze: Snooze) -> Ending:
        try:
            return Ending(Snoozed(check_delay("Snooze", snooze.delay)), "snooze")
        except InvalidJob as error:
            return self.raised(attempt, error)

    def _undecodable(self, attempt: Attempt, error: SerializationError) -> Ending:
        job_id = attempt.claim.job.id
        failure = self._failure(attempt, error, "serialization")
        message = f"the payload of job {job_id} does not decode: {error}"
        report = SerializationError(message, path="payload", job_id=job_id)
        return Ending(Failed(failure), "fail", report)

    def _locked(self, attempt: Attempt, error: UnknownKey) -> Ending:
        """The payload needs a key that is missing here: as with a name that has no handler here."""
        job, now = attempt.claim.job, self._clock.monotonic()
        told = UnknownKey(error.key_id, name=job.name, job_id=job.id)
        delay = self._without_key.delay(job.name, now)
        report = told if self._without_key.should_report(job.name, now) else None
        if self._can_delay:
            return Ending(Released("no key here", delay), "release_unhandled", report)
        failure = self._failure(attempt, told, "serialization")
        return Ending(Failed(failure, started=False), "release_unhandled", report)

    def without_process(self, attempt: Attempt, why: str) -> Ending:
        """No process can be started here: as with a name that has no handler here."""
        delay = self._without_process.delay(attempt.claim.job.name, self._clock.monotonic())
        if self._can_delay:
            return Ending(Released("no process here", delay), "release_unhandled")
        told = RuntimeUnavailable(f"no process for its handler could be started: {why}")
        failure = self._failure(attempt, told, "no_handler")
        return Ending(Failed(failure, started=False), "release_unhandled")

    def _failure(self, attempt: Attempt, error: BaseException, kind: str) -> Failure:
        now = self._clock.now()
        return failure_of(error, kind=kind, attempt=attempt.claim.attempt, at=now)

    def _retry_delay(self, attempt: Attempt, error: BaseException) -> float | None:
        """Seconds to the next attempt, or None where this was the last one."""
        policy = attempt.spec.retry
        asked = isinstance(error, Retry)  # for one more than there would be
        bound = attempt.claim.job.max_attempts
        if bound is None:
            default = self._default_retry.max_attempts if asked else 1
            bound = policy.max_attempts if policy is not None else default
        policy = policy or self._default_retry
        if attempt.claim.attempt >= bound:
            return None
        try:
            if isinstance(error, Retry) and error.after is not None:
                return check_delay("after", error.after)
            if not asked and not policy.retries(error):
                return None
            delay = _asked_for(policy, attempt.claim.attempt, error)
            if delay is None and asked:
                delay = self._default_retry.delay(attempt.claim.attempt)
            return None if delay is None else check_delay("delay()", delay)
        except BaseException as problem:  # code of the user's, as in the executor: it may even exit
            if is_interrupt(problem):
                raise
            # The attempt has failed all the same, for good.
            name, rule = attempt.claim.job.name, f"must give a usable delay: {describe(problem)}"
            self._reporter.report(
                InvalidConfiguration("retry", type(policy).__name__, f"for {name!r} {rule}")
            )
            return None


def _asked_for(policy: RetryRule, attempt: int, error: BaseException) -> float | timedelta | None:
    """What the policy says of this failure; a policy of the user's own need not look at errors."""
    if isinstance(policy, ErrorRule):
        return policy.delay_after(attempt, error)
    return policy.delay(attempt)


def _failed(attempt: Attempt, failure: Failure) -> JobFailed:
    job = attempt.claim.job
    return JobFailed(job.id, job.name, attempt.claim.attempt, failure)
