"""From a row of tenure_jobs to a job, whatever the row holds.

A row that makes no sense gives a job with stand-ins, and a text that says what was wrong with it;
it never raises, so that a bad record harms only itself (I12).

A *job row* is what the statements that say so answer, in this order: seq, id, name, queue, state,
priority, max_attempts, timeout, headers, attempt, stalls, serial, run_at, created_at, updated_at,
finished_at, error, result, progress, cancel_requested, payload, unique_key, limits.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tenure.drivers.sqlite.encoding import (
    PROCESSING,
    STATES,
    moment,
    read_failure,
    read_headers,
    read_limits,
    read_unique,
)
from tenure.outcomes import Failure
from tenure.states import State
from tenure.types import Job, UniqueKey

__all__ = ["HIGHEST", "JobRow", "ReadJob", "bounded", "read_due", "read_job", "readable"]

T = TypeVar("T")
Row = tuple[Any, ...]
JobRow = Row
ReadJob = tuple[Job[bytes], str | None]

_NO_HEADERS: Mapping[str, str] = {}
_UNREADABLE = (ValueError, OverflowError, OSError, IndexError, TypeError, msgspec.MsgspecError)
# Counters stop far from the largest integer, where adding one would fail the statement.
HIGHEST = 2**62


def bounded(count: object) -> int:
    """A counter as it can be used: the stored one, or the nearest that makes sense."""
    return min(max(count, 0), HIGHEST) if isinstance(count, int) else HIGHEST


def readable(value: Any, decode: Callable[[Any], T], stand_in: T) -> T:
    """The decoded value, or the stand-in for one that makes no sense."""
    try:
        return decode(value)
    except _UNREADABLE:
        return stand_in


def read_due(row: Row, queue: str, priority: int, now: datetime) -> Job[bytes] | None:
    """A job that is claimed now, from a row of claim_due; None: the whole row is needed."""
    (_, job_id, name, max_attempts, timeout, headers, attempt, serial, due, made, payload, more) = (
        row
    )
    if more or not (0 < attempt <= HIGHEST and 0 < serial <= HIGHEST):
        return None
    try:
        run_at = moment(due)
        created_at = run_at if made is None else moment(made)
        carried = _NO_HEADERS if headers is None else read_headers(headers)
    except _UNREADABLE:
        return None
    return Job(
        id=job_id,
        name=name,
        queue=queue,
        payload=payload,
        priority=priority,
        max_attempts=max_attempts,
        timeout=timeout,
        headers=carried,
        state=State.PROCESSING,
        attempt=attempt,
        stalls=0,
        serial=serial,
        run_at=run_at,
        created_at=created_at,
        updated_at=now,
        finished_at=None,
        error=None,
        result=None,
        progress=None,
        cancel_requested=False,
    )


def read_job(row: JobRow) -> ReadJob:
    """The job, and what of it could not be read (None: all was well)."""
    try:
        job = _sound(row)
    except _UNREADABLE:
        return _salvaged(row)
    least = 1 if row[4] == PROCESSING else 0  # a claim has counted its start
    if least <= row[9] <= HIGHEST and 0 <= row[10] <= HIGHEST and least <= row[11] <= HIGHEST:
        return job, None
    return _salvaged(row)


def _sound(row: JobRow) -> Job[bytes]:
    (
        _,
        job_id,
        name,
        queue,
        state,
        priority,
        max_attempts,
        timeout,
        headers,
        attempt,
        stalls,
        serial,
        run_at,
        created_at,
        updated_at,
        finished_at,
        error,
        result,
        progress,
        cancel_requested,
        payload,
        unique_key,
        limits,
    ) = row
    job = Job(
        id=job_id,
        name=name,
        queue=queue,
        payload=payload,
        priority=priority,
        max_attempts=max_attempts,
        timeout=timeout,
        headers=_NO_HEADERS if headers is None else read_headers(headers),
        state=_state(state),
        attempt=attempt,
        stalls=stalls,
        serial=serial,
        run_at=moment(run_at),
        created_at=moment(created_at),
        updated_at=moment(updated_at),
        finished_at=None if finished_at is None else moment(finished_at),
        error=None if error is None else read_failure(error),
        result=result,
        progress=progress,
        cancel_requested=cancel_requested != 0,
    )
    if unique_key is None and limits is None:
        return job
    return replace(job, unique=_unique(unique_key), limits=_limits(limits))


def _salvaged(row: JobRow) -> ReadJob:
    """Field by field, with a stand-in and a note for each that cannot be read."""
    wrong: list[str] = []

    def read(field: str, value: Any, decode: Callable[[Any], T], stand_in: T) -> T:
        try:
            return decode(value)
        except _UNREADABLE as error:
            wrong.append(f"{field}: {error}")
            return stand_in

    epoch = moment(0)
    least = 1 if row[4] == PROCESSING else 0
    job = Job[bytes](
        id=row[1],
        name=row[2],
        queue=row[3],
        state=read("state", row[4], _state, State.FAILED),
        priority=row[5],
        max_attempts=row[6],
        timeout=row[7],
        headers=read("headers", row[8], _headers, _NO_HEADERS),
        attempt=read("attempt", row[9], _count(least), max(least, bounded(row[9]))),
        stalls=read("stalls", row[10], _count(0), bounded(row[10])),
        serial=read("serial", row[11], _count(least), max(least, bounded(row[11]))),
        run_at=read("run_at", row[12], moment, epoch),
        created_at=read("created_at", row[13], moment, epoch),
        updated_at=read("updated_at", row[14], moment, epoch),
        finished_at=read("finished_at", row[15], _moment_or_none, None),
        error=read("error", row[16], _failure, None),
        result=row[17],
        progress=row[18],
        cancel_requested=bool(row[19]),
        payload=row[20],
        unique=read("unique_key", row[21], _unique, None),
        limits=read("limits", row[22], _limits, ()),
    )
    return job, "; ".join(wrong) or None


def _state(number: int) -> State:
    if number < 0:
        raise ValueError(f"no state has the number {number}")
    return STATES[number]


def _count(least: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        count = bounded(value)
        if value != count or count < least:
            raise ValueError(f"{value!r} is no number of events")
        return count

    return read


def _headers(text: str | None) -> Mapping[str, str]:
    return _NO_HEADERS if text is None else read_headers(text)


def _failure(text: str | None) -> Failure | None:
    return None if text is None else read_failure(text)


def _unique(text: str | None) -> UniqueKey | None:
    return None if text is None else read_unique(text)


def _limits(text: str | None) -> tuple[str, ...]:
    return () if text is None else read_limits(text)


def _moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else moment(value)
