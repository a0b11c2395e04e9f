"""One dispatch as a value, and its check: from what a caller wrote to what a store takes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tenure.codec import encode, sealed
from tenure.errors import InvalidJob, SerializationError
from tenure.ids import JobIds
from tenure.intake import (
    Unique,
    check_at,
    check_delay,
    check_headers,
    check_limits,
    check_max_attempts,
    check_name,
    check_priority,
    check_timeout,
    check_unique,
    is_plain,
)
from tenure.payload_codec import PayloadCodec
from tenure.types import NewJob, content_digest

__all__ = ["Call", "new_job", "new_jobs"]


class Call:
    """A job to dispatch, with the options of `Queue.dispatch`; checked when it is dispatched."""

    __slots__ = (
        "at",
        "delay",
        "headers",
        "id",
        "limits",
        "max_attempts",
        "name",
        "payload",
        "priority",
        "queue",
        "timeout",
        "unique",
    )

    def __init__(
        self,
        name: str,
        payload: Any = None,
        *,
        queue: str = "default",
        priority: int = 0,
        delay: float | timedelta | None = None,
        at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        unique: str | Unique | None = None,
        limits: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
    ) -> None:
        self.name: str = name
        self.payload: Any = payload
        self.queue: str = queue
        self.priority: int = priority
        self.delay: float | timedelta | None = delay
        self.at: datetime | None = at
        self.max_attempts: int | None = max_attempts
        self.timeout: float | timedelta | None = timeout
        self.unique: str | Unique | None = unique
        self.limits: Iterable[str] = limits
        self.headers: Mapping[str, str] | None = headers
        self.id: str | None = id

    def __repr__(self) -> str:
        return f"Call({self.name!r}, queue={self.queue!r})"


def new_job(
    call: Call, *, ids: JobIds, now: datetime, payload_limit: int, codec: PayloadCodec | None = None
) -> NewJob:
    """Check and encode a call. Raises `InvalidJob` with the path of what was wrong."""
    _check_call(call)
    if call.delay is not None and call.at is not None:
        raise InvalidJob("at", "must not be given together with delay: choose one")
    try:
        payload = encode(call.payload, root="payload", limit=payload_limit)
    except SerializationError as error:
        place = error.path or "payload"
        raise InvalidJob(place, str(error).removeprefix(f"{place}: ")) from None
    fields: dict[str, Any] = {}
    if call.delay is not None:
        fields["delay"] = check_delay("delay", call.delay)
    if call.at is not None:
        fields["at"] = check_at("at", call.at, now)
    if call.max_attempts is not None:
        fields["max_attempts"] = check_max_attempts("max_attempts", call.max_attempts)
    if call.timeout is not None:
        fields["timeout"] = check_timeout("timeout", call.timeout)
    if call.unique is not None:
        fields["unique"] = check_unique("unique", call.unique)
    if call.limits != ():
        fields["limits"] = check_limits("limits", call.limits)
    if call.headers is not None:
        fields["headers"] = check_headers("headers", call.headers)
    job = NewJob(
        id=ids.new(int(now.timestamp() * 1000)) if call.id is None else check_name("id", call.id),
        name=call.name if is_plain(call.name) else check_name("name", call.name),
        queue=call.queue if is_plain(call.queue) else check_name("queue", call.queue),
        priority=check_priority("priority", call.priority),
        payload=payload,
        **fields,
    )
    if codec is None:
        return job
    return replace(
        job,
        payload=sealed(payload, codec),
        content=content_digest(job, codec.digest_key),
    )


def _check_call(call: object) -> None:
    if not isinstance(call, Call):
        raise InvalidJob("", f"must be a tenure.Call, got {type(call).__name__}")


def new_jobs(
    calls: Iterable[Call],
    *,
    ids: JobIds,
    now: datetime,
    payload_limit: int,
    codec: PayloadCodec | None,
) -> list[NewJob]:
    """Check and encode many. The path in an error begins with the place of the call."""
    jobs: list[NewJob] = []
    for call in calls:
        try:
            job = new_job(call, ids=ids, now=now, payload_limit=payload_limit, codec=codec)
        except InvalidJob as error:
            place = f"calls[{len(jobs)}]"
            raise InvalidJob(f"{place}.{error.path}" if error.path else place, error.rule) from None
        jobs.append(job)
    _refuse_repeated_ids(jobs)
    return jobs


def _refuse_repeated_ids(jobs: Sequence[NewJob]) -> None:
    if len({job.id for job in jobs}) == len(jobs):
        return
    seen: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job.id in seen:
            raise InvalidJob(
                f"calls[{index}].id", f"must differ from that of calls[{seen[job.id]}]: {job.id!r}"
            )
        seen[job.id] = index
