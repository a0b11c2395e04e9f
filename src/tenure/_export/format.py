"""What the lines of an export look like, and the line of each thing that is exported. Pure.

Bytes (a payload, say) are a text where they are UTF-8, which gives the very same bytes back, and
else an object with their base64. What is at its default is left out.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from tenure.moved import StoredJob
from tenure.standing import Limit, ScheduleRecord
from tenure.states import State
from tenure.types import NO_HEADERS

__all__ = [
    "Base64",
    "Data",
    "EndLine",
    "Entry",
    "HeaderLine",
    "JobLine",
    "LimitLine",
    "Line",
    "PausedLine",
    "PausedQueue",
    "ScheduleLine",
    "UniquePart",
    "written",
]

Time = Annotated[datetime, Meta(tz=True)]
Number = Annotated[int, Meta(ge=0, le=2_000_000_000)]
Bound = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Priority = Annotated[int, Meta(ge=-100, le=100)]
Content = Annotated[bytes, Meta(min_length=8, max_length=8)]


class PausedQueue(Struct, frozen=True):
    """That workers claim nothing from a queue."""

    queue: str


Entry = StoredJob | ScheduleRecord | Limit | PausedQueue


# --- as they are written --------------------------------------------------------------------------


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    base64: bytes


Data = str | Base64


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class HeaderLine(Part, frozen=True, tag_field="type", tag="header"):
    format: int
    tenure: str
    store: str
    at: Time


class PausedLine(Part, frozen=True, tag_field="type", tag="paused"):
    queue: str


class LimitLine(Part, frozen=True, tag_field="type", tag="limit"):
    key: str
    per_second: Bound | None = None
    concurrent: Bound | None = None


class ScheduleLine(Part, frozen=True, tag_field="type", tag="schedule"):
    id: str
    revision: str
    definition: Data
    created_at: Time
    last: Time
    paused: bool


class ErrorPart(Part, frozen=True):
    kind: str
    message: str
    at: Time
    attempt: int
    trace: str = ""


class UniquePart(Part, frozen=True):
    key: str
    until: Literal["done", "started"] = "done"
    period: float | None = None
    mode: Literal["keep", "replace", "debounce", "throttle"] = "keep"
    max_wait: float | None = None


class HoldsPart(Part, frozen=True):
    until: Time | None = None


class PastPart(Part, frozen=True):
    attempt: Number
    serial: Number
    outcome: str
    started_at: Time
    ended_at: Time
    worker: str
    kind: str = ""
    message: str = ""


class JobLine(Part, frozen=True, tag_field="type", tag="job"):
    id: str
    name: str
    queue: str
    state: State
    payload: Data
    run_at: Time
    created_at: Time
    updated_at: Time
    content: Content
    finished_at: Time | None = None
    priority: Priority = 0
    attempt: Number = 0
    stalls: Number = 0
    serial: Number = 0
    max_attempts: int | None = None
    timeout: float | None = None
    headers: Mapping[str, str] = NO_HEADERS
    limits: tuple[str, ...] = ()
    unique: UniquePart | None = None
    holds_key: HoldsPart | None = None
    cancel_requested: bool = False
    error: ErrorPart | None = None
    result: Data | None = None
    progress: Data | None = None
    history: tuple[PastPart, ...] = ()
    damage: str | None = None


class EndLine(Part, frozen=True, tag_field="type", tag="end"):
    jobs: Number
    schedules: Number
    limits: Number
    paused: Number
    digest: str | None = None


Line = HeaderLine | PausedLine | LimitLine | ScheduleLine | JobLine | EndLine


# --- from what is stored --------------------------------------------------------------------------


def written(entry: Entry) -> Line:
    """The line of an entry."""
    match entry:
        case StoredJob():
            return _job(entry)
        case ScheduleRecord():
            return ScheduleLine(
                id=entry.id,
                revision=entry.revision,
                definition=_data(entry.definition),
                created_at=entry.created_at,
                last=entry.last,
                paused=entry.paused,
            )
        case Limit():
            return LimitLine(
                key=entry.key, per_second=entry.per_second, concurrent=entry.concurrent
            )
        case PausedQueue():
            return PausedLine(queue=entry.queue)


def _job(stored: StoredJob) -> JobLine:
    job = stored.job
    unique, error = job.unique, job.error
    return JobLine(
        id=job.id,
        name=job.name,
        queue=job.queue,
        state=job.state,
        payload=_data(job.payload),
        run_at=job.run_at,
        created_at=job.created_at,
        updated_at=job.updated_at,
        content=stored.content,
        finished_at=job.finished_at,
        priority=job.priority,
        attempt=job.attempt,
        stalls=job.stalls,
        serial=job.serial,
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        headers=job.headers or NO_HEADERS,
        limits=job.limits,
        unique=None if unique is None else UniquePart(**msgspec.structs.asdict(unique)),
        holds_key=None if stored.key is None else HoldsPart(until=stored.key.until),
        cancel_requested=job.cancel_requested,
        error=None if error is None else ErrorPart(**msgspec.structs.asdict(error)),
        result=None if job.result is None else _data(job.result),
        progress=None if job.progress is None else _data(job.progress),
        history=tuple(PastPart(**msgspec.structs.asdict(past)) for past in stored.history),
        damage=stored.damage,
    )


def _data(value: bytes) -> Data:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return Base64(value)
