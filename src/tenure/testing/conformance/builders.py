"""Small makers of what the checks need: instants, jobs, claims, failures.

Time starts at `T0` and moves only by what a check passes as `now`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypedDict, Unpack
from uuid import uuid4

from tenure.driver import Driver
from tenure.outcomes import Failure, Outcome
from tenure.states import State
from tenure.testing.conformance.check import expect, refuse
from tenure.types import (
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Held,
    Hold,
    Job,
    NewJob,
    QueueLimit,
    Recorded,
    UniqueKey,
)

__all__ = [
    "LEASE",
    "T0",
    "after",
    "claim",
    "claim_one",
    "counted",
    "dispatch",
    "enqueue",
    "failure",
    "ids",
    "new_job",
    "record",
    "request",
    "started",
    "stored",
]

T0 = datetime(2030, 1, 1, tzinfo=UTC)
LEASE = 30.0


class JobFields(TypedDict, total=False):
    """The fields of `NewJob` that a check may give."""

    name: str
    queue: str
    payload: bytes
    delay: float | None
    at: datetime | None
    priority: int
    max_attempts: int | None
    timeout: float | None
    unique: UniqueKey | None
    limits: tuple[str, ...]
    headers: Mapping[str, str]
    content: bytes | None


class RequestFields(TypedDict, total=False):
    """The fields of `ClaimRequest` that a check may give as they are."""

    token: str
    limit: int
    worker: str
    lease: float
    max_bytes: int
    names: frozenset[str] | None
    again: bool


def after(seconds: float) -> datetime:
    """The instant that many seconds after `T0`."""
    return T0 + timedelta(seconds=seconds)


def new_job(id: str, **fields: Unpack[JobFields]) -> NewJob:
    """A job named `work` in the queue `default`, unless the fields say otherwise."""
    fields.setdefault("name", "work")
    return NewJob(id=id, **fields)


async def enqueue(store: Driver, *jobs: NewJob, now: datetime = T0) -> None:
    """Store the jobs as one batch; all must be accepted."""
    answers = await store.enqueue(jobs, now=now)
    expect(list(answers), [Enqueued.CREATED] * len(jobs), "the answers of enqueue")


async def dispatch(store: Driver, job: NewJob, *, now: datetime = T0) -> Enqueued | Held:
    """Enqueue one job, and return its answer."""
    answers = await store.enqueue([job], now=now)
    expect(len(answers), 1, "the number of answers of enqueue for one job")
    return answers[0]


def request(*queues: str | QueueLimit, **fields: Unpack[RequestFields]) -> ClaimRequest:
    """A request for up to 100 jobs of `default`, or of the given queues, under a new token."""
    limits = tuple(
        queue if isinstance(queue, QueueLimit) else QueueLimit(queue, 100)
        for queue in queues or ("default",)
    )
    return ClaimRequest(
        token=fields.get("token") or uuid4().hex,
        queues=limits,
        limit=fields.get("limit", 100),
        worker=fields.get("worker", "worker-1"),
        lease=fields.get("lease", LEASE),
        max_bytes=fields.get("max_bytes", 8 * 1024 * 1024),
        names=fields.get("names"),
        again=fields.get("again", False),
    )


async def claim(
    store: Driver,
    *queues: str | QueueLimit,
    now: datetime = T0,
    **fields: Unpack[RequestFields],
) -> Sequence[Claim]:
    """Claim as `request` says."""
    return await store.claim(request(*queues, **fields), now=now)


async def claim_one(
    store: Driver,
    *queues: str | QueueLimit,
    now: datetime = T0,
    **fields: Unpack[RequestFields],
) -> Claim:
    """Claim with a limit of one; there must be a job."""
    fields["limit"] = 1
    claims = await claim(store, *queues, now=now, **fields)
    expect(len(claims), 1, f"the number of jobs claimed at {now:%H:%M:%S} with a limit of 1")
    return claims[0]


async def started(
    store: Driver, id: str, *, now: datetime = T0, lease: float = LEASE, **fields: Unpack[JobFields]
) -> Claim:
    """Enqueue a job into a queue of its own name, unless the fields say otherwise, and claim it."""
    fields.setdefault("queue", id)
    job = new_job(id, **fields)
    await enqueue(store, job, now=now)
    claimed = await claim_one(store, job.queue, now=now, lease=lease)
    expect(claimed.job.id, id, f"the job claimed from the queue {job.queue!r}")
    return claimed


async def record(
    store: Driver,
    hold: Hold,
    outcome: Outcome,
    *,
    now: datetime = T0,
    answer: Recorded = Recorded.APPLIED,
) -> None:
    """Record one outcome, which must be answered as given."""
    answers = await store.record([(hold, outcome)], now=now)
    expect(list(answers), [answer], f"the answer to recording {type(outcome).__name__}")


async def stored(store: Driver, id: str) -> Job[bytes]:
    """The job, which must be there."""
    job = await store.get(id)
    if job is None:
        refuse(f"get({id!r}): expected the job, got None")
    return job


async def counted(store: Driver, now: datetime = T0, queue: str | None = None) -> dict[str, int]:
    """The counts that are not zero, by name, of the whole store or of one queue."""
    counts = await store.counts(now=now)
    if queue is not None:
        counts = counts.by_queue.get(queue, Counts())
    numbers = {"scheduled": counts.scheduled}
    numbers |= {state.value: int(getattr(counts, state.value)) for state in State}
    return {name: number for name, number in numbers.items() if number}


def ids(claims: Sequence[Claim]) -> list[str]:
    """The ids of the claimed jobs, in order."""
    return [claimed.job.id for claimed in claims]


def failure(message: str = "it broke", *, kind: str = "error", attempt: int = 1) -> Failure:
    """Why an attempt failed, seen at `T0`."""
    return Failure(kind=kind, message=message, trace="Traceback: ...", at=T0, attempt=attempt)
