"""What the memory driver keeps of a job, and what can be said of one or of many. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tenure.history import PastAttempt, Tried
from tenure.states import State
from tenure.types import Counts, Hold, Job, JobFilter, NewJob

__all__ = [
    "STALLED",
    "WAITING",
    "Record",
    "changes_of_holder",
    "count",
    "end",
    "matches",
    "stored",
]

STALLED = Tried(outcome="stalled", kind="stalled", message="")
WAITING = frozenset({State.PENDING, State.BLOCKED})

_HISTORY = 100


@dataclass(slots=True, kw_only=True)
class Record:
    """One stored job with what is not part of its view: arrival, content, holds."""

    job: Job[bytes]
    arrival: int
    content: bytes
    hold: Hold | None = None
    lease: float = 0.0
    until: datetime | None = None
    settled: tuple[Hold, str] | None = None
    claimed_at: datetime | None = None
    worker: str = ""
    history: list[PastAttempt] = field(default_factory=list[PastAttempt])

    def change(self, now: datetime, **fields: Any) -> None:
        self.job = replace(self.job, updated_at=now, **fields)

    def remember(self, how: Tried | None, hold: Hold, attempt: int, now: datetime) -> None:
        """Add the attempt that ends now to the history, where it belongs there."""
        if how is not None:
            past = PastAttempt(
                attempt=attempt,
                serial=hold.serial,
                outcome=how.outcome,
                started_at=self.claimed_at or now,
                ended_at=now,
                worker=self.worker,
                kind=how.kind,
                message=how.message,
            )
            self.history = [*self.history, past][-_HISTORY:]

    def place(self) -> tuple[int, datetime, int]:
        """Where it stands within its queue (I11)."""
        return (-self.job.priority, self.job.run_at, self.arrival)


def stored(job: NewJob, now: datetime) -> Job[bytes]:
    return Job(
        id=job.id,
        name=job.name,
        queue=job.queue,
        payload=job.payload,
        priority=job.priority,
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        headers=job.headers,
        state=State.PENDING,
        attempt=0,
        stalls=0,
        serial=0,
        run_at=due(job, now),
        created_at=now,
        updated_at=now,
        finished_at=None,
        error=None,
        result=None,
        progress=None,
        cancel_requested=False,
        unique=job.unique,
        limits=job.limits,
    )


def due(job: NewJob, now: datetime) -> datetime:
    return job.at or now + timedelta(seconds=job.delay or 0.0)


def changes_of_holder(holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
    """What a refused dispatch makes of the waiting holder of its key (`UniqueKey`)."""
    if new.unique is None:
        return {}
    latest = due(new, now)
    if new.unique.max_wait is not None:
        latest = min(latest, holder.created_at + timedelta(seconds=new.unique.max_wait))
    match new.unique.mode:
        case "keep" | "throttle":
            return {}
        case "replace":
            return {"payload": new.payload, "run_at": latest}
        case "debounce":
            return {"run_at": max(holder.run_at, latest)}


def matches(job: Job[bytes], which: JobFilter) -> bool:
    return (
        which.state in (None, job.state)
        and which.queue in (None, job.queue)
        and which.name in (None, job.name)
    )


def end(job: Job[bytes]) -> datetime:
    return job.finished_at or job.updated_at


def count(
    jobs: Sequence[Job[bytes]],
    now: datetime,
    by_queue: dict[str, Counts] | None = None,
    paused: frozenset[str] = frozenset(),
) -> Counts:
    states = [job.state for job in jobs]
    due = sum(job.state is State.PENDING and job.run_at <= now for job in jobs)
    return Counts(
        pending=due,
        scheduled=states.count(State.PENDING) - due,
        blocked=states.count(State.BLOCKED),
        processing=states.count(State.PROCESSING),
        completed=states.count(State.COMPLETED),
        failed=states.count(State.FAILED),
        cancelled=states.count(State.CANCELLED),
        by_queue=by_queue or {},
        paused=paused,
    )
