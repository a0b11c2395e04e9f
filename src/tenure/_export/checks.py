"""What each line of an export must be to be taken in: the rules of a dispatch, and of whole jobs.

Pure. Each check raises `InvalidJob` with the path of the offending place in its line.
"""

from datetime import UTC, datetime

import msgspec

from tenure._export.format import (
    Data,
    EndLine,
    Entry,
    ErrorPart,
    HeaderLine,
    JobLine,
    LimitLine,
    Line,
    PausedLine,
    PausedQueue,
    ScheduleLine,
    UniquePart,
)
from tenure.errors import InvalidJob, SerializationError
from tenure.history import PastAttempt
from tenure.intake import (
    Unique,
    check_headers,
    check_key,
    check_limits,
    check_max_attempts,
    check_name,
    check_timeout,
    check_unique,
)
from tenure.moved import KeyHold, StoredJob
from tenure.outcomes import Failure
from tenure.schedules import read_definition
from tenure.standing import Limit, ScheduleRecord
from tenure.states import TERMINAL, State
from tenure.types import NO_HEADERS, Job, UniqueKey

__all__ = ["entry_of"]

_HISTORY = 100
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_END = datetime(2242, 1, 1, tzinfo=UTC)  # until then every store keeps microseconds exactly


def entry_of(line: Line) -> Entry:
    """What a line stands for. Raises `InvalidJob` with the path of what is wrong with it."""
    match line:
        case JobLine():
            return _job(line)
        case ScheduleLine():
            return _schedule(line)
        case LimitLine():
            return _limit(line)
        case PausedLine():
            return PausedQueue(check_name("$.queue", line.queue))
        case HeaderLine() | EndLine():
            raise InvalidJob("$.type", "must be that of a line between the first and the last")


def _job(line: JobLine) -> StoredJob:
    _check_state(line)
    if line.max_attempts is not None:
        check_max_attempts("$.max_attempts", line.max_attempts)
    if line.timeout is not None:
        check_timeout("$.timeout", line.timeout)
    if check_limits("$.limits", line.limits) != line.limits:
        raise InvalidJob("$.limits", "must be sorted, each key once")
    unique = None if line.unique is None else _unique(line.unique)
    job = Job(
        id=check_name("$.id", line.id),
        name=check_name("$.name", line.name),
        queue=check_name("$.queue", line.queue),
        payload=_bytes(line.payload),
        priority=line.priority,
        max_attempts=line.max_attempts,
        timeout=line.timeout,
        headers=check_headers("$.headers", line.headers) if line.headers else NO_HEADERS,
        state=line.state,
        attempt=line.attempt,
        stalls=line.stalls,
        serial=line.serial,
        run_at=_time("$.run_at", line.run_at),
        created_at=_time("$.created_at", line.created_at),
        updated_at=_time("$.updated_at", line.updated_at),
        finished_at=None if line.finished_at is None else _later("$.finished_at", line.finished_at),
        error=None if line.error is None else _failure(line.error),
        result=None if line.result is None else _bytes(line.result),
        progress=None if line.progress is None else _bytes(line.progress),
        cancel_requested=line.cancel_requested,
        unique=unique,
        limits=line.limits,
    )
    return StoredJob(
        job=job,
        content=line.content,
        key=_key(line, unique),
        history=_history(line),
        damage=line.damage,
    )


def _failure(part: ErrorPart) -> Failure:
    return Failure(
        kind=part.kind,
        message=part.message,
        trace=part.trace,
        at=_utc("$.error.at", part.at),
        attempt=part.attempt,
    )


def _check_state(line: JobLine) -> None:
    """What must go together with a state."""
    if line.state is State.BLOCKED:
        raise InvalidJob("$.state", "must not be blocked: what the job waits for is not known")
    if line.state is State.PROCESSING and not (line.attempt and line.serial):
        raise InvalidJob(
            "$.attempt", "must be at least 1 for a job that is processing, its serial too"
        )
    if (line.finished_at is not None) is not (line.state in TERMINAL):
        raise InvalidJob(
            "$.finished_at", "must be given for a job that has ended, and for no other"
        )
    if line.result is not None and line.state is not State.COMPLETED:
        raise InvalidJob("$.result", "must be that of a completed job")


def _unique(given: UniquePart) -> UniqueKey:
    unique = UniqueKey(**msgspec.structs.asdict(given))
    rules = Unique(
        unique.key,
        until=unique.until,
        period=unique.period,
        mode=unique.mode,
        max_wait=unique.max_wait,
    )
    if check_unique("$.unique", rules) != unique:
        raise InvalidJob("$.unique", "must have a period and a max_wait of at most ten years")
    return unique


def _key(line: JobLine, unique: UniqueKey | None) -> KeyHold | None:
    if line.holds_key is None:
        return None
    if unique is None:
        raise InvalidJob("$.holds_key", "must not be given for a job without a unique key")
    until = line.holds_key.until
    if unique.mode == "throttle":
        if until is None:
            raise InvalidJob("$.holds_key.until", "must be given for a throttle")
    elif line.state in TERMINAL:
        raise InvalidJob("$.holds_key", "must not be given for a job that has ended")
    return KeyHold(until=None if until is None else _later("$.holds_key.until", until))


def _history(line: JobLine) -> tuple[PastAttempt, ...]:
    if len(line.history) > _HISTORY:
        raise InvalidJob("$.history", f"must have at most {_HISTORY} attempts")
    before = -1
    found: list[PastAttempt] = []
    for place, past in enumerate(line.history):
        path = f"$.history[{place}]"
        if not before < past.serial <= line.serial:
            rule = "must grow from one attempt to the next, up to that of the job"
            raise InvalidJob(f"{path}.serial", rule)
        if "\0" in past.worker:
            raise InvalidJob(f"{path}.worker", "must not contain a NUL character")
        before = past.serial
        found.append(
            PastAttempt(
                attempt=past.attempt,
                serial=past.serial,
                outcome=past.outcome,
                started_at=_time(f"{path}.started_at", past.started_at),
                ended_at=_time(f"{path}.ended_at", past.ended_at),
                worker=past.worker,
                kind=past.kind,
                message=past.message,
            )
        )
    return tuple(found)


def _schedule(line: ScheduleLine) -> ScheduleRecord:
    definition = _bytes(line.definition)
    try:
        read_definition(definition)
    except SerializationError as error:
        raise InvalidJob("$.definition", str(error)) from None
    return ScheduleRecord(
        id=check_name("$.id", line.id),
        revision=check_name("$.revision", line.revision),
        definition=definition,
        created_at=_time("$.created_at", line.created_at),
        last=_time("$.last", line.last),
        paused=line.paused,
    )


def _limit(line: LimitLine) -> Limit:
    beginning = line.key.removesuffix("*")
    if line.key != "*":
        check_key("$.key", beginning)
    if line.per_second is None and line.concurrent is None:
        raise InvalidJob("$.per_second", "or concurrent must be given, or both")
    return Limit(key=line.key, per_second=line.per_second, concurrent=line.concurrent)


def _bytes(data: Data) -> bytes:
    return data.encode("utf-8") if isinstance(data, str) else data.base64


def _time(path: str, given: datetime) -> datetime:
    instant = _utc(path, given)
    if not _BEGINNING <= instant < _END:
        raise InvalidJob(path, f"must lie between 1970 and 2241, got {given}")
    return instant


def _later(path: str, given: datetime) -> datetime:
    """A time after the first of all, which stands for none in some stores."""
    if _time(path, given) == _BEGINNING:
        raise InvalidJob(path, f"must be later than the beginning of 1970, got {given}")
    return given.astimezone(UTC)


def _utc(path: str, given: datetime) -> datetime:
    try:
        return given.astimezone(UTC)
    except OverflowError:
        raise InvalidJob(path, f"must be a time in UTC, got {given}") from None
