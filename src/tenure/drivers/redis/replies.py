"""How answers of scripts become values. Pure.

A record that cannot be read harms only itself (I12): what of it is damaged gets a stand-in, and a
note that tells.
"""

import struct
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from tenure.drivers.redis import records
from tenure.drivers.redis.requests import STATES
from tenure.history import PastAttempt, Tried
from tenure.presence import WorkerInfo
from tenure.standing import Fired, Limit, ScheduleRecord, Schedules
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
    Recorded,
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
    "limits",
    "must_go_on",
    "reclaimed",
    "recorded",
    "schedules",
    "workers",
]

_ENQUEUED = (Enqueued.CREATED, Enqueued.DUPLICATE)
_RECORDED = (Recorded.APPLIED, Recorded.REPEATED, Recorded.FENCED, Recorded.UNKNOWN)
_FIRED = (Fired.FIRED, Fired.LOST, Fired.EARLY)
_KEPT = (Kept.KEPT, Kept.LOST, Kept.CANCEL_REQUESTED)
_SCHEDULE = struct.Struct(">BQQ")  # as lua/parts/book.lua packs it
_PAST = struct.Struct(">IIQQ")  # as lua/parts/history.lua packs it
_tried = msgspec.json.Decoder(Tried)
_workers = msgspec.json.Decoder(WorkerInfo)


def jobs(reply: Sequence[Any]) -> tuple[Job[bytes], ...]:
    return tuple([read.job for read in records.read_jobs(reply)])


def claims(reply: Sequence[Any], token: str) -> list[Claim]:
    return [
        Claim(
            job=read.job,
            hold=Hold(read.job.id, read.head.serial, token),
            attempt=read.head.attempt,
            stalls=read.head.stalls,
            lease=read.head.lease / records.MILLION,
            damage=read.damage,
        )
        for read in records.read_jobs(reply)
    ]


def expired(reply: Sequence[Any]) -> Expired:
    now, ids, packed = reply
    found: list[ExpiredHold] = []
    for job_id, raw in zip(ids, packed, strict=True):
        try:
            head = records.read_head(raw or b"")
        except records.UNREADABLE:
            continue  # reclaim takes it away
        hold = Hold(job_id.decode(), head.serial, head.token)
        found.append(
            ExpiredHold(
                hold=hold, until=records.nearest(head.until), lease=head.lease / records.MILLION
            )
        )
    return Expired(now=records.moment(int(now)), holds=tuple(found))


def history(reply: Sequence[bytes]) -> list[PastAttempt]:
    """Oldest first; an entry that cannot be read is left out."""
    found: list[PastAttempt] = []
    for entry in reply:
        try:
            attempt, serial, started_at, ended_at = _PAST.unpack_from(entry)
            worker = records.sized(entry, _PAST.size)
            how = _tried.decode(entry[_PAST.size + 2 + len(worker) :])
            past = PastAttempt(
                attempt=attempt,
                serial=serial,
                outcome=how.outcome,
                started_at=records.nearest(started_at),
                ended_at=records.nearest(ended_at),
                worker=worker.decode(),
                kind=how.kind,
                message=how.message,
            )
        except records.UNREADABLE:
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


def must_go_on(reply: Sequence[Any]) -> bool:
    """Whether a claim that took nothing had to stop before it had looked at all it may take."""
    return not reply[1] and reply[5] == 1


def limits(reply: Sequence[bytes]) -> list[Limit]:
    """By key."""
    found: list[Limit] = []
    for key, bounds in _pairs(reply):
        rate, _, concurrent = bounds.partition(b":")
        limit = Limit(
            key=key,
            per_second=int(rate) if rate else None,
            concurrent=int(concurrent) if concurrent else None,
        )
        found.append(limit)
    return sorted(found, key=attrgetter("key"))


def fired(reply: Sequence[int]) -> list[Fired]:
    return [_FIRED[number] for number in reply]


def schedules(reply: Sequence[Any]) -> Schedules:
    """By id; one that cannot be read is not shown, and stays as it is."""
    found: list[ScheduleRecord] = []
    now, flat = reply
    for name, packed in zip(flat[::2], flat[1::2], strict=True):
        try:
            paused, created_at, last = _SCHEDULE.unpack_from(packed)
            revision = records.sized(packed, _SCHEDULE.size)
            record = ScheduleRecord(
                id=name.decode(),
                revision=revision.decode(),
                definition=packed[_SCHEDULE.size + 2 + len(revision) :],
                created_at=records.nearest(created_at),
                last=records.nearest(last),
                paused=paused != 0,
            )
        except records.UNREADABLE:
            continue
        found.append(record)
    return Schedules(now=records.moment(int(now)), items=sorted(found, key=attrgetter("id")))


def workers(reply: Sequence[bytes | None]) -> list[WorkerInfo]:
    """By id; one whose report cannot be read is not shown."""
    shown: list[WorkerInfo] = []
    for info in reply:
        try:
            shown.append(_workers.decode(info or b""))
        except records.UNREADABLE:
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
