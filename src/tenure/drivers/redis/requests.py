"""How values become the arguments of scripts. Pure; payloads and results pass as they are.

What each script takes, and in which order, stands at the top of its file.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, assert_never

import msgspec

from tenure.drivers.redis.client import Argument
from tenure.history import Tried, tried
from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retried,
    Snoozed,
    outcome_digest,
)
from tenure.standing import Limit, NewSchedule, Tick
from tenure.states import State
from tenure.types import (
    ClaimRequest,
    Hold,
    Job,
    JobFilter,
    ManualRetry,
    Move,
    NewJob,
    Retention,
    content_digest,
)

__all__ = [
    "MODES",
    "STATES",
    "UNIQUE",
    "claimed",
    "filtered",
    "group",
    "holds",
    "json_text",
    "kind",
    "limited",
    "micros",
    "moves",
    "now_or_empty",
    "options",
    "reclaimed",
    "retained",
    "retries",
    "schedules",
    "settled",
    "sized",
    "span",
    "ticks",
]

# By their number in a mark, which is stored for ever: append, never reorder.
STATES = (
    State.PENDING,
    State.BLOCKED,
    State.PROCESSING,
    State.COMPLETED,
    State.FAILED,
    State.CANCELLED,
)

# The modes of a unique key, likewise; and what stands before the key (lua/parts/unique.lua).
MODES: Sequence[Literal["keep", "replace", "debounce", "throttle"]] = (
    "keep",
    "replace",
    "debounce",
    "throttle",
)
UNIQUE = struct.Struct(">BBdd")
_KIND = struct.Struct(">bH")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_json = msgspec.json.Encoder()
_STALLED = _json.encode(Tried(outcome="stalled", kind="stalled", message=""))


def micros(instant: datetime) -> int:
    """Whole microseconds since the epoch; exact, which a float is not."""
    return (instant - _EPOCH) // _MICROSECOND


def span(seconds: float) -> int:
    """Whole microseconds of a duration."""
    return round(seconds * 1_000_000)


def now_or_empty(now: datetime | None) -> Argument:
    """The first argument of every script: empty means the server's clock."""
    return "" if now is None else micros(now)


def group(jobs: Sequence[NewJob]) -> list[Argument]:
    """One group of enqueue."""
    arguments: list[Argument] = [len(jobs)]
    for job in jobs:
        arguments += _stored(job)
    return arguments


def _stored(job: NewJob) -> tuple[Argument, ...]:
    payload = job.payload
    size = len(payload).to_bytes(4, "big")
    return (
        job.id,
        "" if job.at is None and not job.delay else _when(job),
        size + content_digest(job),
        kind(job),
        b"%b\n%b" % (options(job), payload),
    )


def _when(job: NewJob) -> str:
    """When it is due: an instant, or how long from now."""
    return f"+{span(job.delay or 0)}" if job.at is None else f"@{micros(job.at)}"


def kind(job: NewJob | Job[bytes]) -> bytes:
    """What jobs of one kind have in common, as the mark has it (lua/parts/marks.lua)."""
    queue, name = job.queue.encode(), job.name.encode()
    plain = _KIND.pack(job.priority, len(queue)) + queue + sized(name)
    return plain if job.unique is None and not job.limits else plain + _tail(job)


def options(job: NewJob | Job[bytes]) -> bytes:
    """What never changes and no script needs to know, as JSON, which has no line break in it."""
    if job.max_attempts is None and job.timeout is None and not job.headers:
        return b""
    return _json.encode((job.max_attempts, job.timeout, job.headers))


def _tail(job: NewJob | Job[bytes]) -> bytes:
    """The unique key and the limits."""
    unique = b""
    if job.unique is not None:
        unique = UNIQUE.pack(
            job.unique.until == "started",
            MODES.index(job.unique.mode),
            -1.0 if job.unique.period is None else job.unique.period,
            -1.0 if job.unique.max_wait is None else job.unique.max_wait,
        )
        unique += job.unique.key.encode()
    limits = b"".join(sized(key.encode()) for key in job.limits)
    return sized(unique) + sized(limits)


def sized(text: bytes) -> bytes:
    """The text behind its length."""
    return len(text).to_bytes(2, "big") + text


def claimed(request: ClaimRequest) -> list[Argument]:
    """A claim."""
    arguments: list[Argument] = [
        request.token,
        request.worker,
        span(request.lease),
        request.limit,
        request.max_bytes,
        int(request.again),
    ]
    for queue in request.queues:
        arguments += (queue.name, queue.limit)
    return arguments


def settled(items: Sequence[tuple[Hold, Outcome]]) -> list[Argument]:
    """The items of record."""
    arguments: list[Argument] = [len(items)]
    for hold, outcome in items:
        arguments += (hold.job_id, hold.serial, hold.token, outcome_digest(outcome))
        arguments += _ending(outcome)
    return arguments


def _ending(outcome: Outcome) -> tuple[Argument, ...]:
    """Kind, delay, failure or result of an outcome, and what the history gets.

    Nothing for the usual one, of which the digest says all.
    """
    match outcome:
        case Completed(result=result):
            return () if result is None else ("returned", "", result, "")
        case Failed(failure=failure, started=started):
            kind = "failed" if started else "unstarted_failed"
            return (kind, "", json_text(failure), _how(outcome))
        case Cancelled(started=started):
            kind = "cancelled" if started else "unstarted_cancelled"
            return (kind, "", "", _how(outcome))
        case Retried(delay=delay, failure=failure):
            return ("retried", span(delay), json_text(failure), _how(outcome))
        case Snoozed(delay=delay):
            return ("snoozed", span(delay), "", "")
        case Released(delay=delay):
            return ("released", "" if delay is None else span(delay), "", "")
        case _:
            assert_never(outcome)


def _how(outcome: Outcome) -> bytes:
    how = tried(outcome)
    return b"" if how is None else json_text(how)


def json_text(said: Failure | Tried) -> bytes:
    """A failure, or what a history keeps of it, as JSON, whatever its message holds.

    A lone surrogate (an exception about a file name, say) is no UTF-8; it is written as an escape,
    since a failure that cannot be stored would leave its job running for ever.
    """
    try:
        return _json.encode(said)
    except UnicodeEncodeError:
        parts = msgspec.structs.asdict(said)
        return _json.encode(
            {
                name: value.encode("utf-8", "backslashreplace").decode()
                if isinstance(value, str)
                else value
                for name, value in parts.items()
            }
        )


def holds(given: Sequence[Hold]) -> list[Argument]:
    """Holds, three arguments each."""
    arguments: list[Argument] = []
    for hold in given:
        arguments += (hold.job_id, hold.serial, hold.token)
    return arguments


def reclaimed(limit: int, delays: Sequence[float], only: Sequence[Hold] | None) -> list[Argument]:
    """A reclaim."""
    given = ["*"] if only is None else holds(only)
    return [limit, _STALLED, len(delays), *map(span, delays), *given]


def retries(items: Sequence[ManualRetry]) -> list[Argument]:
    """The items of retry."""
    arguments: list[Argument] = []
    for item in items:
        arguments += (item.job_id, _or_empty(item.serial))
    return arguments


def moves(items: Sequence[Move]) -> list[Argument]:
    """The items of move."""
    arguments: list[Argument] = []
    for item in items:
        arguments += (
            item.job_id,
            _or_empty(item.queue),
            "" if item.at is None else micros(item.at),
            _or_empty(item.priority),
            _or_empty(item.serial),
        )
    return arguments


def schedules(given: Sequence[NewSchedule]) -> list[Argument]:
    """Schedules to store."""
    arguments: list[Argument] = []
    for schedule in given:
        arguments += (schedule.id, schedule.revision, schedule.definition)
    return arguments


def ticks(given: Sequence[Tick]) -> list[Argument]:
    """The ticks of fire."""
    arguments: list[Argument] = []
    for tick in given:
        arguments += (tick.schedule_id, tick.revision, micros(tick.previous), micros(tick.instant))
        arguments += (0,) if tick.job is None else (1, *_stored(tick.job))
    return arguments


def limited(limit: Limit) -> list[Argument]:
    """A limit to store, as lua/parts/limits.lua reads it."""
    rate = "" if limit.per_second is None else limit.per_second
    concurrent = "" if limit.concurrent is None else limit.concurrent
    return [limit.key, f"{rate}:{concurrent}"]


def filtered(which: JobFilter) -> list[Argument]:
    """A filter."""
    state = None if which.state is None else STATES.index(which.state)
    return [_or_empty(state), _or_empty(which.queue), _or_empty(which.name)]


def retained(retention: Retention) -> list[Argument]:
    """What prune keeps."""
    ages = (retention.completed, retention.failed, retention.cancelled)
    return [
        *("" if age is None else span(age) for age in ages),
        _or_empty(retention.completed_count),
        _or_empty(retention.completed_bytes),
    ]


def _or_empty(value: Argument | None) -> Argument:
    return "" if value is None else value
