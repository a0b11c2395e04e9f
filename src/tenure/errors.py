"""Everything that `tenure` raises or reports.

    TenureError
    └── QueueError
        ├── StoreError                  the store refused, definitely
        │   ├── StoreUnavailable        it could not be reached; `.ambiguous`: it may have acted
        │   └── SchemaMismatch          its schema is older or newer than this code
        ├── InvalidConfiguration        an option, when something is built
        ├── InvalidJob                  a dispatch: `.path` names the place, `.rule` what holds
        ├── SerializationError          a payload or result that cannot be encoded or decoded
        │   └── UnknownKey              it is encrypted under a key that is not known here
        ├── JobNotFound, DuplicateJob, PartialDispatch, Unsupported, RuntimeUnavailable
        ├── ScheduleNotFound
        ├── JobFailed, JobTimedOut, JobPanicked, JobCancelled     how one attempt or job ended
        ├── JobOverdue, LoopBlocked, LeaseLost, HandlerNotFound   what a worker noticed
        ├── StateTransitionError        a write that was refused by its hold
        ├── HookFailed                  a hook or a shared dependency of a worker raised
        └── WorkerTaskError             a loop of the worker itself died and was restarted

Every error carries its data as attributes; its message says what was expected, what was got and
what to do.
"""

from collections.abc import Sequence

from tenure.outcomes import Failure
from tenure.shown import shown

__all__ = [
    "DuplicateJob",
    "HandlerNotFound",
    "HookFailed",
    "InvalidConfiguration",
    "InvalidJob",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobOverdue",
    "JobPanicked",
    "JobTimedOut",
    "LeaseLost",
    "LoopBlocked",
    "PartialDispatch",
    "QueueError",
    "RuntimeUnavailable",
    "ScheduleNotFound",
    "SchemaMismatch",
    "SerializationError",
    "StateTransitionError",
    "StoreError",
    "StoreUnavailable",
    "TenureError",
    "UnknownKey",
    "Unsupported",
    "WorkerTaskError",
]


class TenureError(Exception):
    """The root of the tree."""


class QueueError(TenureError):
    """Anything about a queue, its jobs or its workers; what `next_error()` returns."""


# --- the store ----------------------------------------------------------------------------------


class StoreError(QueueError):
    """The store refused the call. Nothing of it was done."""


class StoreUnavailable(StoreError):
    """The store could not be reached, or gave up.

    With `ambiguous` the call may have been done before the answer was lost; repeat it with the
    same ids and tokens. Without it nothing was done.
    """

    def __init__(self, message: str, *, ambiguous: bool = False) -> None:
        super().__init__(message)
        self.ambiguous = ambiguous


class SchemaMismatch(StoreError):
    """The store's schema has version `found`, this code works with `expected`."""

    def __init__(self, *, found: int, expected: int, remedy: str) -> None:
        super().__init__(
            f"the store has schema version {found}, this tenure works with {expected}: {remedy}"
        )
        self.found = found
        self.expected = expected
        self.remedy = remedy


class Unsupported(QueueError):
    """The driver does not offer `operation`; `capabilities` says so before any call."""

    def __init__(self, operation: str) -> None:
        super().__init__(f"this store does not support {operation}")
        self.operation = operation


# --- what a caller passed -----------------------------------------------------------------------


class InvalidConfiguration(QueueError, ValueError):
    """`option` was given `value`; `rule` is what it must be."""

    def __init__(self, option: str, value: object, rule: str) -> None:
        super().__init__(f"{option} {rule}, got {shown(value)}")
        self.option = option
        self.value = value
        self.rule = rule


class InvalidJob(QueueError, ValueError):
    """A dispatch was refused and nothing of it stored; `path` names the offending place."""

    def __init__(self, path: str, rule: str) -> None:
        super().__init__(f"{path}: {rule}")
        self.path = path
        self.rule = rule


class SerializationError(QueueError):
    """A payload or result could not be encoded or decoded; `path` names the place where known."""

    def __init__(self, message: str, *, path: str | None = None, job_id: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.job_id = job_id


class UnknownKey(SerializationError):
    """What is stored is encrypted under a key that is not known here, so it is not damaged.

    `key_id` names the key where that can be told. A worker leaves such jobs to others.
    """

    def __init__(
        self, key_id: str | None = None, *, name: str | None = None, job_id: str | None = None
    ) -> None:
        subject = "what is stored" if job_id is None else f"the payload of job {job_id} ({name})"
        key = "a key" if key_id is None else f"the key {key_id}"
        super().__init__(
            f"{subject} is encrypted under {key} that is not known here; add it to the keys of the "
            "queue's codec. Jobs are put back meanwhile, or fail where the store cannot delay them",
            path=None if job_id is None else "payload",
            job_id=job_id,
        )
        self.key_id = key_id
        self.name = name


class JobNotFound(QueueError, LookupError):
    """No job has this id, or no longer."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"no job has the id {shown(job_id)}; it may have been deleted or pruned")
        self.job_id = job_id


class ScheduleNotFound(QueueError, LookupError):
    """No schedule has this id."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(
            f"no schedule has the id {shown(schedule_id)}; `Queue.schedules` lists those there are"
        )
        self.schedule_id = schedule_id


class DuplicateJob(QueueError):
    """The id is stored, or was until a moment ago, with other content. Nothing was stored."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"the id {job_id!r} belongs to a job with other content; choose another id, or leave "
            "it out to get a fresh one"
        )
        self.job_id = job_id


class PartialDispatch(QueueError):
    """`dispatch_many` failed after some chunks: `stored` ids are safe, `unsure` ones may be."""

    def __init__(self, *, stored: Sequence[str], unsure: Sequence[str]) -> None:
        super().__init__(
            f"{len(stored)} jobs were stored before the failure and {len(unsure)} may have been; "
            "the ids are in .stored and .unsure, the cause in __cause__"
        )
        self.stored: tuple[str, ...] = tuple(stored)
        self.unsure: tuple[str, ...] = tuple(unsure)


class RuntimeUnavailable(QueueError, RuntimeError):
    """There is no running event loop, or the queue is closed."""


# --- how an attempt or a job ended --------------------------------------------------------------


class JobFailed(QueueError):
    """An attempt failed, or, from `JobHandle.result`, the job did."""

    def __init__(self, job_id: str, name: str, attempt: int, failure: Failure) -> None:
        super().__init__(f"job {job_id} ({name}) failed on attempt {attempt}: {failure.message}")
        self.job_id = job_id
        self.name = name
        self.attempt = attempt
        self.failure = failure


class JobTimedOut(QueueError):
    """An attempt was cancelled at its deadline, `timeout` seconds after its start."""

    def __init__(self, job_id: str, timeout: float) -> None:
        super().__init__(f"job {job_id} was cancelled at its time limit of {timeout:g} s")
        self.job_id = job_id
        self.timeout = timeout


class JobPanicked(QueueError):
    """A handler raised something outside `Exception`, as `SystemExit` is, or its process died."""

    def __init__(self, job_id: str, message: str = "") -> None:
        super().__init__(f"job {job_id} raised {message or 'outside Exception'}")
        self.job_id = job_id


class JobCancelled(QueueError):
    """The job was cancelled, so there is no result."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} was cancelled")
        self.job_id = job_id


# --- what a worker noticed ----------------------------------------------------------------------


class JobOverdue(QueueError):
    """A handler that cannot be interrupted is `seconds` past its start and keeps its slot.

    `slots_left` is how many slots of its worker such handlers leave to others, where known: with
    none the worker can start nothing, and is unhealthy until one of them returns.
    """

    def __init__(
        self, job_id: str, name: str, seconds: float, *, slots_left: int | None = None
    ) -> None:
        none = "; no slot of the worker is left for others, so that it is unhealthy until then"
        super().__init__(
            f"job {job_id} ({name}) still runs after {seconds:.1f} s, past its time limit; it "
            "cannot be interrupted and keeps its slot until it returns"
            f"{none if slots_left == 0 else ''}"
        )
        self.job_id = job_id
        self.name = name
        self.seconds = seconds
        self.slots_left = slots_left


class LoopBlocked(QueueError):
    """The event loop did not turn for `seconds`, while `job_id` (if it is known) was running."""

    def __init__(
        self, job_id: str | None, name: str | None, seconds: float, where: str = ""
    ) -> None:
        subject = f"job {job_id} ({name})" if job_id else "something outside the handlers"
        super().__init__(
            f"{subject} blocked the event loop for {seconds:.2f} s"
            f"{f' at {where}' if where else ''}; "
            "make the handler a plain def, so that it runs in a thread, or await more often"
        )
        self.job_id = job_id
        self.name = name
        self.seconds = seconds
        self.where = where


class LeaseLost(QueueError):
    """The hold of a running attempt is no longer current; its handler was cancelled."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id} was reclaimed while it ran here; its handler was cancelled and nothing "
            "it returns will be recorded"
        )
        self.job_id = job_id


class HandlerNotFound(QueueError):
    """No handler is registered under `name`; its jobs are left to other workers."""

    def __init__(self, name: str, job_id: str | None = None, hint: str = "") -> None:
        super().__init__(
            f"no handler is registered for {name!r}{hint}; its jobs are put back for a worker that "
            "has one, or fail where the store cannot delay them"
        )
        self.name = name
        self.job_id = job_id


class StateTransitionError(QueueError):
    """A write after a claim was not applied, and changed nothing."""

    def __init__(self, job_id: str, operation: str, message: str) -> None:
        super().__init__(f"{operation} of job {job_id}: {message}")
        self.job_id = job_id
        self.operation = operation
        self.message = message


class WorkerTaskError(QueueError):
    """The worker's own loop `task` died of `__cause__` and is started again."""

    def __init__(self, task: str, message: str) -> None:
        super().__init__(f"the {task} loop died and is started again: {message}")
        self.task = task
        self.message = message


class HookFailed(QueueError):
    """`hook`, a function beside the handlers, raised `__cause__`; no job is harmed by it."""

    def __init__(self, hook: str, message: str) -> None:
        super().__init__(f"{hook} raised {message}")
        self.hook = hook
        self.message = message
