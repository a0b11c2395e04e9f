"""Durable background jobs for Python: dispatch, run, account for every end.

    import tenure

    queue = tenure.connect("sqlite:///jobs.db")
    worker = tenure.Worker(queue)

`connect` gives a `Queue`, `Worker` runs the jobs dispatched through it, `migrate` upgrades a
store. Everything public is importable from here; nothing is opened, started or registered by the
import.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from tenure.around import DispatchMiddleware
from tenure.beside import Lifeline
from tenure.bulk import Answers
from tenure.call import Call
from tenure.clock import Clock, SystemClock
from tenure.driver import Capability, Driver, KeeperHandle
from tenure.errors import (
    DuplicateJob,
    HandlerNotFound,
    HookFailed,
    InvalidConfiguration,
    InvalidJob,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobOverdue,
    JobPanicked,
    JobTimedOut,
    LeaseLost,
    LoopBlocked,
    PartialDispatch,
    QueueError,
    RuntimeUnavailable,
    ScheduleNotFound,
    SchemaMismatch,
    SerializationError,
    StateTransitionError,
    StoreError,
    StoreUnavailable,
    TenureError,
    UnknownKey,
    Unsupported,
    WorkerTaskError,
)
from tenure.events import (
    ErrorReported,
    Event,
    JobClaimed,
    JobFenced,
    JobSettled,
    JobsReclaimed,
    JobStarted,
    LeaseEnded,
    Observer,
    ScheduleFired,
    TicksSkipped,
)
from tenure.fernet import Fernet
from tenure.history import PastAttempt
from tenure.intake import Unique
from tenure.job_handle import JobHandle
from tenure.migration import migrate
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
from tenure.payload_codec import PayloadCodec
from tenure.presence import WorkerInfo
from tenure.progress import LogLine, Progress
from tenure.queue import Queue, connect
from tenure.retry import RetryPolicy
from tenure.schedules import Schedule
from tenure.standing import (
    Fired,
    Limit,
    Missed,
    NewSchedule,
    ScheduleRecord,
    Schedules,
    Tick,
)
from tenure.states import State
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Counts,
    Damaged,
    Enqueued,
    Exchanged,
    Expired,
    ExpiredHold,
    Held,
    Hold,
    Job,
    JobFilter,
    Kept,
    ManualRetry,
    Move,
    NewJob,
    Page,
    QueueLimit,
    Recorded,
    Retention,
    UniqueKey,
)
from tenure.verdicts import Cancel, Retry, Snooze
from tenure.version import VERSION

if _TYPE_CHECKING:
    from tenure._runtime.current import current_job
    from tenure._runtime.handle import WorkerHandle
    from tenure._runtime.running_job import RunningJob
    from tenure._runtime.surroundings import Middleware
    from tenure._runtime.vitals import Vitals
    from tenure.dependencies import INJECTED, Depends
    from tenure.process_pool import ProcessDied, ProcessPool
    from tenure.processes import ExitStatus, run_processes
    from tenure.sync import SyncJobHandle, SyncQueue
    from tenure.task import Task
    from tenure.tasks import Tasks
    from tenure.worker import Worker

__all__ = [
    "Answer",
    "Answers",
    "Call",
    "Cancel",
    "Cancelled",
    "Capability",
    "Claim",
    "ClaimRequest",
    "Clock",
    "Completed",
    "Counts",
    "Damaged",
    "Depends",
    "DispatchMiddleware",
    "Driver",
    "DuplicateJob",
    "Enqueued",
    "ErrorReported",
    "Event",
    "Exchanged",
    "ExitStatus",
    "Expired",
    "ExpiredHold",
    "Failed",
    "Failure",
    "Fernet",
    "Fired",
    "HandlerNotFound",
    "Held",
    "Hold",
    "HookFailed",
    "INJECTED",
    "InvalidConfiguration",
    "InvalidJob",
    "Job",
    "JobCancelled",
    "JobClaimed",
    "JobFailed",
    "JobFenced",
    "JobFilter",
    "JobHandle",
    "JobNotFound",
    "JobOverdue",
    "JobPanicked",
    "JobSettled",
    "JobStarted",
    "JobTimedOut",
    "JobsReclaimed",
    "KeeperHandle",
    "Kept",
    "LeaseEnded",
    "LeaseLost",
    "Lifeline",
    "Limit",
    "LogLine",
    "LoopBlocked",
    "ManualRetry",
    "Middleware",
    "Missed",
    "Move",
    "NewJob",
    "NewSchedule",
    "Observer",
    "Outcome",
    "Page",
    "PartialDispatch",
    "PastAttempt",
    "PayloadCodec",
    "ProcessDied",
    "ProcessPool",
    "Progress",
    "Queue",
    "QueueError",
    "QueueLimit",
    "Recorded",
    "Released",
    "Retention",
    "Retried",
    "Retry",
    "RetryPolicy",
    "RunningJob",
    "RuntimeUnavailable",
    "Schedule",
    "ScheduleFired",
    "ScheduleNotFound",
    "ScheduleRecord",
    "Schedules",
    "SchemaMismatch",
    "SerializationError",
    "Snooze",
    "Snoozed",
    "State",
    "StateTransitionError",
    "StoreError",
    "StoreUnavailable",
    "SyncJobHandle",
    "SyncQueue",
    "SystemClock",
    "Task",
    "Tasks",
    "TenureError",
    "Tick",
    "TicksSkipped",
    "Unique",
    "UniqueKey",
    "UnknownKey",
    "Unsupported",
    "Vitals",
    "Worker",
    "WorkerHandle",
    "WorkerInfo",
    "WorkerTaskError",
    "connect",
    "current_job",
    "migrate",
    "run_processes",
]

__version__ = VERSION


# What runs jobs is loaded when it is first asked for: a quarter of the import, which a program that
# dispatches does without.
_LATER = {
    "Depends": "tenure.dependencies",
    "ExitStatus": "tenure.processes",
    "ProcessDied": "tenure.process_pool",
    "ProcessPool": "tenure.process_pool",
    "INJECTED": "tenure.dependencies",
    "Middleware": "tenure._runtime.surroundings",
    "RunningJob": "tenure._runtime.running_job",
    "SyncJobHandle": "tenure.sync",
    "SyncQueue": "tenure.sync",
    "Task": "tenure.task",
    "Tasks": "tenure.tasks",
    "Vitals": "tenure._runtime.vitals",
    "Worker": "tenure.worker",
    "WorkerHandle": "tenure._runtime.handle",
    "current_job": "tenure._runtime.current",
    "run_processes": "tenure.processes",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    globals()[name] = getattr(_import_module(_LATER[name]), name)
    _present(name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def _present(*names: str) -> None:
    """Let tracebacks and help name public objects by where users import them from."""
    for name in names:
        item = globals()[name]
        if getattr(item, "__module__", "").startswith("tenure."):
            item.__module__ = "tenure"


_present(*(name for name in __all__ if name not in _LATER))
del VERSION
