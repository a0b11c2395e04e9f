"""What a schedule is: its definition as stored bytes, and each of its ticks as a job. Pure."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.cron import Recurrence, parse
from tenure.errors import InvalidJob, SerializationError
from tenure.intake import (
    Unique,
    check_headers,
    check_limits,
    check_max_attempts,
    check_name,
    check_priority,
    check_timeout,
    check_unique,
)
from tenure.standing import Missed, ScheduleRecord
from tenure.types import NO_HEADERS, NewJob, UniqueKey

__all__ = ["Definition", "Schedule", "job_of_tick", "read_definition", "written_definition"]


class Definition(Struct, frozen=True, kw_only=True):
    """What recurs, when, and with which options; those of the job are as in `NewJob`."""

    expression: str
    zone: str
    missed: Missed
    name: str
    queue: str
    payload: bytes
    priority: int = 0
    max_attempts: int | None = None
    timeout: float | None = None
    unique: UniqueKey | None = None
    limits: tuple[str, ...] = ()
    headers: Mapping[str, str] = NO_HEADERS

    def recurrence(self) -> Recurrence:
        return parse(self.expression, self.zone)


def written_definition(definition: Definition) -> bytes:
    """The bytes to store: the same for the same definition, so that a store can compare them."""
    ordered = replace(definition, headers=dict(sorted(definition.headers.items())))
    return msgspec.json.encode(ordered)


def read_definition(data: bytes) -> Definition:
    """The definition in stored bytes. Raises `SerializationError` where they are none.

    Also where its jobs would be refused at a dispatch: they are stored together with those of other
    schedules, and what a store cannot take would keep these out too.
    """
    try:
        definition = msgspec.json.decode(data, type=Definition)
        _check(definition)
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidJob) as error:
        raise SerializationError(f"the definition of a schedule does not decode: {error}") from None
    return definition


def _check(definition: Definition) -> None:
    """Raise `InvalidJob` for what `dispatch` would not have let in."""
    check_name("name", definition.name)
    check_name("queue", definition.queue)
    check_priority("priority", definition.priority)
    check_headers("headers", definition.headers)
    check_limits("limits", definition.limits)
    if definition.max_attempts is not None:
        check_max_attempts("max_attempts", definition.max_attempts)
    if definition.timeout is not None:
        check_timeout("timeout", definition.timeout)
    if (key := definition.unique) is not None:
        check_unique(
            "unique",
            Unique(
                key.key, until=key.until, period=key.period, mode=key.mode, max_wait=key.max_wait
            ),
        )


def job_of_tick(record: ScheduleRecord, definition: Definition, instant: datetime) -> NewJob:
    """The job of one instant: due then, its id the same whoever makes it.

    Its headers tell where it comes from: `schedule` is the id, `tick` the instant in ISO 8601.
    """
    tick = instant.isoformat()
    origin = f"{record.id}\0{record.revision}\0{tick}".encode("utf-8", "backslashreplace")
    return NewJob(
        id=f"tick-{blake2b(origin, digest_size=16).hexdigest()}",
        name=definition.name,
        queue=definition.queue,
        payload=definition.payload,
        at=instant,
        priority=definition.priority,
        max_attempts=definition.max_attempts,
        timeout=definition.timeout,
        unique=definition.unique,
        limits=definition.limits,
        headers={**definition.headers, "schedule": record.id, "tick": tick},
    )


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as a queue shows it, at the store's time `seen_at`.

    `last` is the newest instant that was fired or skipped, or when this definition was stored or
    the schedule resumed; `next` the first one to come, also while it is paused; None where there is
    none ever again. The options of its jobs are those given to `Queue.schedule`.

    `damage` says why the stored definition could not be read; its fields are then stand-ins.
    """

    id: str
    expression: str
    zone: str
    missed: Missed
    name: str
    queue: str
    payload: Any
    priority: int
    max_attempts: int | None
    timeout: float | None
    unique: UniqueKey | None
    limits: tuple[str, ...]
    headers: Mapping[str, str]
    paused: bool
    created_at: datetime
    last: datetime
    next: datetime | None
    seen_at: datetime
    damage: str | None = None

    @property
    def overdue(self) -> float:
        """For how many seconds its first instant after `last` has passed and not been fired.

        0 where none has, while it is paused, and where it cannot be read.
        """
        if self.paused or self.damage is not None:
            return 0.0
        first = parse(self.expression, self.zone).following(self.last, self.created_at)
        return 0.0 if first is None else max(0.0, (self.seen_at - first).total_seconds())

    def upcoming(self, count: int) -> tuple[datetime, ...]:
        """The next instants after `seen_at`, at most `count`; aware, in UTC."""
        if self.damage is not None:
            return ()
        after = max(self.last, self.seen_at)
        return parse(self.expression, self.zone).upcoming(after, self.created_at, count)
