"""What the memory driver keeps of a job, and what can be said of one or of many. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tenure.states import State
from tenure.types import Counts, Hold, Job, JobFilter, NewJob

__all__ = ["Record", "count", "end", "matches", "stored"]


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

    def change(self, now: datetime, **fields: Any) -> None:
        self.job = replace(self.job, updated_at=now, **fields)

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
        run_at=job.at or now + timedelta(seconds=job.delay or 0.0),
        created_at=now,
        updated_at=now,
        finished_at=None,
        error=None,
        result=None,
        progress=None,
        cancel_requested=False,
    )


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
