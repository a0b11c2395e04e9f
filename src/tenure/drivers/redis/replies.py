"""How answers of scripts become values. Pure.

A record that cannot be read harms only itself (I12): what of it is damaged gets a stand-in, and a
note that tells.
"""

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from tenure.drivers.redis.requests import MODES, STATES, UNIQUE
from tenure.outcomes import Failure, Tried
from tenure.standing import Fired, ScheduleRecord, Schedules
from tenure.states import State
from tenure.types import (
    Answer,
    Claim,
    Counts,
    Enqueued,
    Expired,
    ExpiredHold,
    Held,
    Hold,
    Job,
    Kept,
    PastAttempt,
    Recorded,
    UniqueKey,
    WorkerInfo,
)

__all__ = [
    "answers",
    "claims",
    "counts",
    "enqueued",
    "expired",
    "fired",
    "history",
    "jobs",
    "kept",
    "moment",
    "reclaimed",
    "recorded",
    "schedules",
    "workers",
]

_MILLION = 1_000_000
_ENQUEUED = (Enqueued.CREATED, Enqueued.DUPLICATE)
_RECORDED = (Recorded.APPLIED, Recorded.REPEATED, Recorded.FENCED, Recorded.UNKNOWN)
_FIRED = (Fired.FIRED, Fired.LOST, Fired.EARLY)
_KEPT = (Kept.KEPT, Kept.LOST, Kept.CANCEL_REQUESTED)
_NO_HEADERS: Mapping[str, str] = {}
_UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, IndexError, struct.error)


class _Mark(Struct, gc=False):
    """What changes of a job, in the order of the fields in lua/parts/store.lua."""

    state: int
    cancel: int
    extras: int
    priority: int
    run_at: int
    created_at: int
    updated_at: int
    finished_at: int
    until: int
    lease: int
    claimed_at: int
    attempt: int
    stalls: int
    serial: int
    settled_serial: int
    size: int
    seq: bytes
    content: bytes
    token: bytes
    queue: str
    name: str
    tail: bytes


_NUMBERS = struct.Struct(">BBBb7Q5I16s16s")
_EXTRAS, _HAS_TAIL = 2, 8 + 16  # where a mark says so, and its bits for unique key and limits
_STAND_IN = b"-" * 16  # the content of a mark that a claim had to make up


def _mark(packed: bytes) -> _Mark:
    """Read a mark: fixed numbers, then texts behind their lengths. What was settled, and who
    made the hold, is passed over.

    Written out, since a claim spends a third of its time here.
    """
    token = _NUMBERS.size + 1
    settled_token = token + packed[token - 1] + 1
    settled_outcome = settled_token + packed[settled_token - 1] + 1
    worker = settled_outcome + packed[settled_outcome - 1] + 2
    queue = worker + (packed[worker - 2] << 8 | packed[worker - 1]) + 2
    name = queue + (packed[queue - 2] << 8 | packed[queue - 1]) + 2
    end = name + (packed[name - 2] << 8 | packed[name - 1])
    if end != len(packed) and not packed[_EXTRAS] & _HAS_TAIL:
        raise ValueError("it has another length than it says")
    texts: list[Any] = [
        packed[token : settled_token - 1],
        packed[queue : name - 2].decode(),
        packed[name:end].decode(),
        packed[end:],
    ]
    return _Mark(*_NUMBERS.unpack_from(packed), *texts)


def _sized(data: bytes, at: int) -> bytes:
    """The part that stands behind its length."""
    end = at + 2 + (data[at] << 8 | data[at + 1])
    if end > len(data):
        raise ValueError("it is shorter than it says")
    return data[at + 2 : end]


def _tail(tail: bytes) -> tuple[UniqueKey | None, tuple[str, ...]]:
    """The unique key and the limits behind a mark."""
    packed = _sized(tail, 0)
    unique: UniqueKey | None = None
    if packed:
        started, mode, period, max_wait = UNIQUE.unpack_from(packed)
        unique = UniqueKey(
            key=packed[UNIQUE.size :].decode(),
            until="started" if started else "done",
            period=period if period >= 0 else None,
            mode=MODES[int(mode)],
            max_wait=max_wait if max_wait >= 0 else None,
        )
    keys = _sized(tail, 2 + len(packed))
    limits: list[str] = []
    at = 0
    while at < len(keys):
        key = _sized(keys, at)
        limits.append(key.decode())
        at += 2 + len(key)
    return unique, tuple(limits)


_heads = msgspec.json.Decoder(tuple[int | None, float | None, dict[str, str]])
_SCHEDULE = struct.Struct(">BQQ")  # as lua/parts/book.lua packs it
_PAST = struct.Struct(">IIQQ")  # as lua/parts/history.lua packs it
_tried = msgspec.json.Decoder(Tried)
_failures = msgspec.json.Decoder(Failure)
_workers = msgspec.json.Decoder(WorkerInfo)


class _Read(Struct, gc=False):
    """One job of an answer, with its mark and what is wrong with it."""

    mark: _Mark
    job: Job[bytes]
    damage: str | None


def moment(instant: int) -> datetime:
    """The time of whole microseconds since the epoch.

    Through a float, which is exact to the microsecond until the year 2242.
    """
    return datetime.fromtimestamp(instant / _MILLION, UTC)


class _Moments(dict[int, datetime]):
    """The times of one answer: most come more than once, and making one takes long."""

    def __missing__(self, instant: int) -> datetime:
        made = self[instant] = moment(instant)
        return made


# --- jobs ---------------------------------------------------------------------------------------


def _read(reply: Sequence[Any]) -> list[_Read]:
    """The jobs of an answer of parts/showing.lua; one whose mark is unreadable is left out."""
    _, ids, packed, blobs, more = reply[:5]
    extras = {entry[0] - 1: entry[1:] for entry in more}
    none = (None, None, None)
    moments = _Moments()
    found: list[_Read] = []
    for n, (job_id, mark, blob) in enumerate(zip(ids, packed, blobs, strict=True)):
        try:
            read = _mark(mark)
            found.append(_job(job_id.decode(), read, blob, extras.get(n, none), moments))
        except _UNREADABLE:
            continue
    return found


def _job(
    job_id: str,
    mark: _Mark,
    blob: bytes | None,
    extras: Sequence[bytes | None],
    moments: _Moments,
) -> _Read:
    wrong = [] if mark.content != _STAND_IN else ["its record could not be read"]
    if blob is None:
        wrong.append("its payload is gone")
    head, _, payload = (blob or b"\n").partition(b"\n")
    max_attempts: int | None = None
    timeout: float | None = None
    headers = _NO_HEADERS
    error: Failure | None = None
    unique: UniqueKey | None = None
    limits: tuple[str, ...] = ()
    failure, result, progress = extras
    if mark.tail:
        try:
            unique, limits = _tail(mark.tail)
        except _UNREADABLE as cause:
            wrong.append(f"unique key or limits: {cause}")
    if head:
        try:
            max_attempts, timeout, headers = _heads.decode(head)
        except _UNREADABLE as cause:
            wrong.append(f"headers: {cause}")
    if failure is not None:
        try:
            error = _failures.decode(failure)
        except _UNREADABLE as cause:
            wrong.append(f"error: {cause}")
    job = Job(
        id=job_id,
        name=mark.name,
        queue=mark.queue,
        payload=payload,
        priority=mark.priority,
        max_attempts=max_attempts,
        timeout=timeout,
        headers=headers,
        state=STATES[mark.state],
        attempt=mark.attempt,
        stalls=mark.stalls,
        serial=mark.serial,
        run_at=moments[mark.run_at],
        created_at=moments[mark.created_at],
        updated_at=moments[mark.updated_at],
        finished_at=moments[mark.finished_at] if mark.finished_at else None,
        error=error,
        result=result,
        progress=progress,
        cancel_requested=mark.cancel != 0,
        unique=unique,
        limits=limits,
    )
    return _Read(mark, job, "; ".join(wrong) or None)


def jobs(reply: Sequence[Any]) -> tuple[Job[bytes], ...]:
    return tuple([read.job for read in _read(reply)])


def claims(reply: Sequence[Any], token: str) -> list[Claim]:
    return [
        Claim(
            job=read.job,
            hold=Hold(read.job.id, read.mark.serial, token),
            attempt=read.mark.attempt,
            stalls=read.mark.stalls,
            lease=read.mark.lease / _MILLION,
            damage=read.damage,
        )
        for read in _read(reply)
    ]


def expired(reply: Sequence[Any]) -> Expired:
    now, ids, packed = reply
    found: list[ExpiredHold] = []
    for job_id, raw in zip(ids, packed, strict=True):
        try:
            mark = _mark(raw or b"")
        except _UNREADABLE:
            continue  # reclaim takes it away
        hold = Hold(job_id.decode(), mark.serial, mark.token.decode())
        found.append(ExpiredHold(hold=hold, until=moment(mark.until), lease=mark.lease / _MILLION))
    return Expired(now=moment(int(now)), holds=tuple(found))


def history(reply: Sequence[bytes]) -> list[PastAttempt]:
    """Oldest first; an entry that cannot be read is left out."""
    found: list[PastAttempt] = []
    for entry in reply:
        try:
            attempt, serial, started_at, ended_at = _PAST.unpack_from(entry)
            worker = _sized(entry, _PAST.size)
            how = _tried.decode(entry[_PAST.size + 2 + len(worker) :])
            past = PastAttempt(
                attempt=attempt,
                serial=serial,
                outcome=how.outcome,
                started_at=moment(started_at),
                ended_at=moment(ended_at),
                worker=worker.decode(),
                kind=how.kind,
                message=how.message,
            )
        except _UNREADABLE:
            continue
        found.append(past)
    return found


def reclaimed(reply: Sequence[bytes]) -> list[Hold]:
    flat = [part.decode() for part in reply]
    return [
        Hold(job_id, int(serial), token)
        for job_id, serial, token in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    ]


# --- answers ------------------------------------------------------------------------------------


def enqueued(reply: Sequence[int | bytes]) -> list[Enqueued | Held]:
    return [
        _ENQUEUED[answer] if isinstance(answer, int) else Held(answer.decode()) for answer in reply
    ]


def recorded(reply: Sequence[int]) -> list[Recorded]:
    return [_RECORDED[number] for number in reply]


def kept(reply: Sequence[int]) -> list[Kept]:
    return [_KEPT[number] for number in reply]


def answers(reply: Sequence[bytes]) -> list[Answer]:
    return [Answer(text.decode()) for text in reply]


def fired(reply: Sequence[int]) -> list[Fired]:
    return [_FIRED[number] for number in reply]


def schedules(reply: Sequence[Any]) -> Schedules:
    """By id; one that cannot be read is not shown, and stays as it is."""
    found: list[ScheduleRecord] = []
    now, flat = reply
    for name, packed in zip(flat[::2], flat[1::2], strict=True):
        try:
            paused, created_at, last = _SCHEDULE.unpack_from(packed)
            revision = _sized(packed, _SCHEDULE.size)
            record = ScheduleRecord(
                id=name.decode(),
                revision=revision.decode(),
                definition=packed[_SCHEDULE.size + 2 + len(revision) :],
                created_at=moment(created_at),
                last=moment(last),
                paused=paused != 0,
            )
        except _UNREADABLE:
            continue
        found.append(record)
    return Schedules(now=moment(int(now)), items=sorted(found, key=attrgetter("id")))


def workers(reply: Sequence[bytes | None]) -> list[WorkerInfo]:
    """By id; one whose report cannot be read is not shown."""
    shown: list[WorkerInfo] = []
    for info in reply:
        try:
            shown.append(_workers.decode(info or b""))
        except _UNREADABLE:
            continue
    return sorted(shown, key=lambda worker: worker.id)


def counts(reply: Sequence[Any]) -> Counts:
    paused = frozenset(name.decode() for name in reply[0])
    stored: dict[str, dict[State, int]] = {queue: {} for queue in paused}
    for field, number in _pairs(reply[1]):
        stored.setdefault(field[1:], {})[STATES[int(field[0])]] = int(number)
    due = {queue: int(number) for queue, number in _pairs(reply[2])}
    by_queue = {
        queue: _queue_counts(states, due.get(queue, 0)) for queue, states in sorted(stored.items())
    }
    each = by_queue.values()
    return Counts(
        pending=sum(queue.pending for queue in each),
        scheduled=sum(queue.scheduled for queue in each),
        blocked=sum(queue.blocked for queue in each),
        processing=sum(queue.processing for queue in each),
        completed=sum(queue.completed for queue in each),
        failed=sum(queue.failed for queue in each),
        cancelled=sum(queue.cancelled for queue in each),
        by_queue=by_queue,
        paused=paused,
    )


def _queue_counts(states: Mapping[State, int], due: int) -> Counts:
    return Counts(
        pending=due,
        scheduled=states.get(State.PENDING, 0) - due,
        blocked=states.get(State.BLOCKED, 0),
        processing=states.get(State.PROCESSING, 0),
        completed=states.get(State.COMPLETED, 0),
        failed=states.get(State.FAILED, 0),
        cancelled=states.get(State.CANCELLED, 0),
    )


def _pairs(flat: Sequence[Any]) -> list[tuple[str, Any]]:
    names = [name.decode() for name in flat[::2]]
    return list(zip(names, flat[1::2], strict=True))
