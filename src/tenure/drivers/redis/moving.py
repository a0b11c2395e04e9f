"""What the scripts about whole jobs take and answer. Pure."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tenure.drivers.redis import records, replies
from tenure.drivers.redis.client import Argument
from tenure.drivers.redis.requests import STATES, json_text, kind, micros, options, sized
from tenure.history import PastAttempt, Tried
from tenure.moved import DUMP_BYTES, Dump, DumpPlace, KeyHold, Restored, StoredJob, at_rest
from tenure.standing import ScheduleRecord
from tenure.types import Held, Job

__all__ = [
    "dumped",
    "page",
    "restored",
    "restored_schedules",
    "restoring",
    "restoring_schedules",
]

_ANSWERS = (Restored.STORED, Restored.KNOWN, Restored.DUPLICATE)
_TIMES = struct.Struct(">QQQ")  # updated, due, created; then come 16 digits
_HEAD = struct.Struct(">I8sHBBB3Q4IHBB")  # size, content, length of the rest
_HEAD_LENGTH = 47
_PAST, _SCHEDULE = struct.Struct(">IIQQ"), struct.Struct(">BQQ")
_ERROR, _RESULT, _PROGRESS, _UNIQUE, _LIMITS, _HISTORY = 1, 2, 4, 8, 16, 32


# --- out ----------------------------------------------------------------------------------------


def page(place: DumpPlace | None, limit: int) -> list[Argument]:
    """A page of a dump."""
    bounds: list[Argument] = [0, ""] if place is None else [place.after, place.last]
    return [*bounds, limit, DUMP_BYTES]


def dumped(reply: Sequence[Any]) -> Dump:
    last, following, histories, held, unreadable = reply[5:10]
    past = {n - 1: replies.history(entries) for n, entries in histories}
    keys = {n - 1: _key(entry) for n, entry in held}
    jobs: list[StoredJob] = []
    lost = [job_id.decode("utf-8", "replace") for job_id in unreadable]
    for n, read in enumerate(records.read_each(reply)):
        if read is None:
            lost.append(reply[1][n].decode("utf-8", "replace"))
        else:
            jobs.append(_whole(read, reply[2][n], n, past, keys))
    cursor = DumpPlace(int(following), int(last)).cursor() if following else None
    return Dump(jobs=tuple(jobs), cursor=cursor, unreadable=tuple(lost))


def _whole(
    read: records.Read,
    mark: bytes,
    n: int,
    past: Mapping[int, Sequence[PastAttempt]],
    keys: Mapping[int, KeyHold],
) -> StoredJob:
    return StoredJob(
        job=read.job,
        content=records.content_of(mark),
        key=keys.get(n),
        history=tuple(past.get(n, ())),
        damage=read.damage,
    )


def _key(entry: bytes) -> KeyHold:
    """As lua/parts/unique.lua has it."""
    ends = int(entry[:16])
    return KeyHold(until=records.nearest(ends) if ends else None)


# --- in -----------------------------------------------------------------------------------------


def restoring(jobs: Sequence[StoredJob]) -> list[Argument]:
    """The jobs of restore."""
    arguments: list[Argument] = []
    for each in jobs:
        arguments += _stored(at_rest(each))
    return arguments


def _stored(each: StoredJob) -> list[Argument]:
    job = each.job
    until: Argument = ""
    if each.key is not None:
        until = 0 if each.key.until is None else micros(each.key.until)
    return [
        job.id,
        each.content,
        _TIMES.pack(micros(job.updated_at), micros(job.run_at), micros(job.created_at)),
        _rest_of_mark(each),
        b"%b\n%b" % (options(job), job.payload),
        b"" if job.error is None else json_text(job.error),
        job.result or b"",
        job.progress or b"",
        until,
        len(each.history),
        *(_past(past) for past in each.history),
    ]


def _rest_of_mark(each: StoredJob) -> bytes:
    """What comes after the number of arrival, as lua/parts/marks.lua lays it out."""
    job = each.job
    head = _HEAD.pack(
        len(job.payload),
        each.content,
        _HEAD_LENGTH,
        STATES.index(job.state),
        job.cancel_requested,
        _extras(job, each.history),
        0 if job.finished_at is None else micros(job.finished_at),
        *(0, 0),  # the lease
        *(job.attempt, job.stalls, job.serial),
        *(0, 0, 0, 0),  # no hold, and none that was settled
    )
    return head + kind(job)


def _extras(job: Job[bytes], history: Sequence[PastAttempt]) -> int:
    there = {
        _ERROR: job.error is not None,
        _RESULT: job.result is not None,
        _PROGRESS: job.progress is not None,
        _UNIQUE: job.unique is not None,
        _LIMITS: bool(job.limits),
        _HISTORY: bool(history),
    }
    return sum(bit for bit, is_there in there.items() if is_there)


def _past(past: PastAttempt) -> bytes:
    """As lua/parts/history.lua packs it."""
    numbers = _PAST.pack(past.attempt, past.serial, micros(past.started_at), micros(past.ended_at))
    how = Tried(outcome=past.outcome, kind=past.kind, message=past.message)
    return numbers + sized(past.worker.encode()) + json_text(how)


def restored(reply: Sequence[int | bytes]) -> list[Restored | Held]:
    return [
        _ANSWERS[answer] if isinstance(answer, int) else Held(answer.decode()) for answer in reply
    ]


def restoring_schedules(schedules: Sequence[ScheduleRecord]) -> list[Argument]:
    """The schedules of restore_schedules, as lua/parts/book.lua packs them."""
    arguments: list[Argument] = []
    for each in schedules:
        times = _SCHEDULE.pack(each.paused, micros(each.created_at), micros(each.last))
        whole = times + sized(each.revision.encode()) + each.definition
        arguments += (each.id, each.definition, whole)
    return arguments


def restored_schedules(reply: Sequence[int]) -> list[Restored]:
    return [_ANSWERS[number] for number in reply]
