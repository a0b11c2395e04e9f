"""What happened, as frozen values: the runtime emits them, observers receive them.

An observer is a plain function `observer(event) -> None`, called on the worker's event loop; it
must not block. Nothing an observer does or raises changes what happens to a job.
"""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from tenure.errors import QueueError
from tenure.outcomes import Outcome
from tenure.types import Hold, Job

__all__ = [
    "ErrorReported",
    "Event",
    "JobClaimed",
    "JobFenced",
    "JobSettled",
    "JobStarted",
    "JobsReclaimed",
    "LeaseEnded",
    "Observer",
    "ScheduleFired",
    "TicksSkipped",
]


class JobClaimed(Struct, frozen=True, kw_only=True):
    """A claim returned the job to this worker; it may still be put back instead of started."""

    job: Job[bytes]
    hold: Hold


class JobStarted(Struct, frozen=True, kw_only=True):
    """The handler is about to be called for the `attempt`-th time."""

    job: Job[bytes]
    hold: Hold
    attempt: int


class JobSettled(Struct, frozen=True, kw_only=True):
    """The store has applied the outcome: completed, retried, released, failed and so on.

    `seconds` is how long the handler ran, 0 where it was not started.
    """

    job: Job[bytes]
    hold: Hold
    attempt: int
    outcome: Outcome
    seconds: float


class JobFenced(Struct, frozen=True, kw_only=True):
    """The store refused the write `operation`, since the hold is not current."""

    job: Job[bytes]
    hold: Hold
    operation: str


class LeaseEnded(Struct, frozen=True, kw_only=True):
    """The hold of a running attempt was found to be lost."""

    job: Job[bytes]
    hold: Hold


class JobsReclaimed(Struct, frozen=True, kw_only=True):
    """This worker made the jobs of expired holds, whoever's, pending again."""

    job_ids: tuple[str, ...]


class ScheduleFired(Struct, frozen=True, kw_only=True):
    """This worker let an instant of a schedule pass, and so made its job.

    (There is no new job where its unique key was held.)
    """

    schedule_id: str
    instant: datetime
    job_id: str


class TicksSkipped(Struct, frozen=True, kw_only=True):
    """Missed instants of a schedule were dropped, all before `until` or with it.

    `skipped` is how many, at most 10,000; with `capped` there may have been more.
    """

    schedule_id: str
    skipped: int
    capped: bool
    until: datetime


class ErrorReported(Struct, frozen=True, kw_only=True):
    """The error was put into the handle's buffer, or dropped where the buffer was full."""

    error: QueueError
    dropped: bool


Event = (
    JobClaimed
    | JobStarted
    | JobSettled
    | JobFenced
    | LeaseEnded
    | JobsReclaimed
    | ScheduleFired
    | TicksSkipped
    | ErrorReported
)
Observer = Callable[[Event], None]
