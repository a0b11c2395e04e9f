"""The operations that give out whole jobs, and take in those of another store.

A page of a dump is one statement, and so one look. What is taken in is decided in the server.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tenure.drivers.postgres.encoding import (
    NUMBERS,
    array_text,
    failure_text,
    text_of,
    tried_text,
)
from tenure.drivers.postgres.pool import Runner
from tenure.drivers.postgres.rows import UNREADABLE, Row, nearest, read_how, read_whole
from tenure.errors import InvalidConfiguration
from tenure.history import PastAttempt, Tried
from tenure.moved import DUMP_BYTES, Dump, DumpPlace, KeyHold, Restored, StoredJob, at_rest
from tenure.standing import ScheduleRecord
from tenure.types import Held

__all__ = ["dump", "restore", "restore_schedules"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEQ = 3
_ANSWERS = (Restored.STORED, Restored.KNOWN, Restored.DUPLICATE)
_histories = msgspec.json.Decoder(list[tuple[int, int, int, int, str | None, str]])


async def dump(runner: Runner, cursor: str | None, limit: int, now: datetime | None) -> Dump:
    """See `Driver.dump`. The numbers of arrival are the seqs."""
    place = None if cursor is None else DumpPlace.read(cursor)
    if cursor is not None and place is None:
        raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")
    bounds = (0, None) if place is None else (place.after, place.last)
    rows = await runner.fetch("dump", *bounds, limit, DUMP_BYTES, now)
    if not rows:
        return Dump(jobs=(), cursor=None)
    last: int = rows[-1][-5]
    more: bool = rows[-1][-4]
    following = DumpPlace(rows[-1][_SEQ], last).cursor()
    return Dump(jobs=tuple(_whole(row) for row in rows), cursor=following if more else None)


def _whole(row: Row) -> StoredJob:
    job, damage = read_whole(row)
    content, _, _, holds, until, history = list(row)[-6:]
    return StoredJob(
        job=job,
        content=content,
        key=KeyHold(until=None if until is None else nearest(until)) if holds else None,
        history=tuple(_past(history)),
        damage=damage,
    )


def _past(history: str | None) -> list[PastAttempt]:
    if history is None:
        return []
    return [
        _attempt(attempt, serial, begin, end, worker or "", read_how(how))
        for attempt, serial, begin, end, worker, how in _histories.decode(history)
    ]


def _attempt(
    attempt: int, serial: int, begin: int, end: int, worker: str, how: Tried
) -> PastAttempt:
    return PastAttempt(
        attempt=attempt,
        serial=serial,
        outcome=how.outcome,
        started_at=_moment(begin),
        ended_at=_moment(end),
        worker=worker,
        kind=how.kind,
        message=how.message,
    )


def _moment(instant: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=instant)
    except UNREADABLE:
        ends = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        return ends[instant > 0]


async def restore(
    runner: Runner, jobs: Sequence[StoredJob], now: datetime | None
) -> list[Restored | Held]:
    """See `Driver.restore`."""
    if not jobs:
        return []
    resting = [at_rest(each) for each in jobs]
    rows = await runner.fetch("restore", *_columns(resting), *_past_columns(resting), now)
    answers, holders = rows[0]
    return [
        _ANSWERS[answer] if holder is None else Held(holder)
        for answer, holder in zip(answers, holders, strict=True)
    ]


def _columns(stored: Sequence[StoredJob]) -> tuple[list[Any] | None, ...]:
    jobs = [each.job for each in stored]
    uniques = [job.unique for job in jobs]
    return (
        [job.id for job in jobs],
        [job.name for job in jobs],
        [job.queue for job in jobs],
        [job.payload for job in jobs],
        [job.priority for job in jobs],
        [job.max_attempts for job in jobs],
        [job.timeout for job in jobs],
        [text_of(job.headers) if job.headers else None for job in jobs],
        [each.content for each in stored],
        [NUMBERS[job.state] for job in jobs],
        [job.attempt for job in jobs],
        [job.stalls for job in jobs],
        [job.serial for job in jobs],
        [job.run_at for job in jobs],
        [job.created_at for job in jobs],
        [job.updated_at for job in jobs],
        [job.finished_at for job in jobs],
        [None if job.error is None else failure_text(job.error) for job in jobs],
        [job.result for job in jobs],
        [job.progress for job in jobs],
        [job.cancel_requested for job in jobs],
        [unique and unique.key for unique in uniques],
        [unique and unique.until for unique in uniques],
        [unique and unique.mode for unique in uniques],
        [unique and unique.period for unique in uniques],
        [unique and unique.max_wait for unique in uniques],
        [array_text(job.limits) if job.limits else None for job in jobs]
        if any(job.limits for job in jobs)
        else None,
        [each.key is not None and each.job.unique is not None for each in stored],
        [each.key and each.key.until for each in stored],
    )


def _past_columns(stored: Sequence[StoredJob]) -> tuple[list[Any] | None, ...]:
    """The attempts of all histories; no columns where there are none."""
    past = [(each.job.id, attempt) for each in stored for attempt in each.history]
    if not past:
        return (None,) * 7
    return (
        [job_id for job_id, _ in past],
        [attempt.serial for _, attempt in past],
        [attempt.started_at for _, attempt in past],
        [attempt.ended_at for _, attempt in past],
        [attempt.attempt for _, attempt in past],
        [attempt.worker for _, attempt in past],
        [
            tried_text(Tried(outcome=attempt.outcome, kind=attempt.kind, message=attempt.message))
            for _, attempt in past
        ],
    )


async def restore_schedules(runner: Runner, schedules: Sequence[ScheduleRecord]) -> list[Restored]:
    """See `Driver.restore_schedules`."""
    if not schedules:
        return []
    rows = await runner.fetch(
        "restore_schedules",
        [each.id for each in schedules],
        [each.revision for each in schedules],
        [each.definition for each in schedules],
        [each.created_at for each in schedules],
        [each.last for each in schedules],
        [each.paused for each in schedules],
    )
    return [_ANSWERS[answer] for answer in rows[0][0]]
