"""From a row of the table of jobs to a job, whatever the row holds.

A row that makes no sense gives a job with stand-ins, and a text that says what was wrong with it;
it never raises, so that a bad record harms only itself (I12). The types of the columns leave little
that can be wrong: the texts in JSON, the number of the state, a count below 0, how a unique key is
held, a key of a limit that is NULL, and times beyond those of Python.

The columns of a *job row* are in job_row.sql. More columns may follow them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Any, Protocol, TypeVar

import msgspec

from tenure.drivers.postgres.encoding import STATES, read_failure, read_headers, read_tried
from tenure.history import PastAttempt, Tried
from tenure.outcomes import Failure
from tenure.states import State
from tenure.types import Claim, Hold, Job, UniqueKey

__all__ = [
    "Row",
    "UNREADABLE",
    "nearest",
    "read_claims",
    "read_how",
    "read_job",
    "read_past",
    "read_places",
    "read_whole",
]

T = TypeVar("T")


class Row(Protocol):
    """A row of an answer, by place."""

    def __getitem__(self, place: int, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


ReadJob = tuple[Job[bytes], str | None]

_NO_HEADERS: Mapping[str, str] = {}
_STATES = dict(enumerate(STATES))
_PROCESSING = STATES.index(State.PROCESSING)
_ZERO = datetime(2000, 1, 1, tzinfo=UTC)  # from which the server counts
_UNKNOWN = Tried(outcome="unknown", kind="damaged", message="")
UNREADABLE = (ValueError, IndexError, TypeError, OverflowError, msgspec.MsgspecError)
_microseconds = Struct(">q").unpack
_QUEUE, _PRIORITY, _RUN_AT, _SEQ, _LEASE = range(5)


class _Times(dict[bytes, datetime]):
    """Times by the eight bytes in which they were sent. For one answer: jobs share most of them."""

    def __missing__(self, sent: bytes) -> datetime:
        time = _ZERO + timedelta(0, *divmod(_microseconds(sent)[0], 1_000_000))
        self[sent] = time
        return time


def nearest(sent: bytes) -> datetime:
    """A time by its eight bytes; the first or the last that there is for what lies beyond it."""
    try:
        return _Times()[sent]
    except OverflowError:
        ends = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        instant: int = _microseconds(sent)[0]
        return ends[instant > 0]


def read_claims(rows: Sequence[Row], token: str, queues: Sequence[str]) -> list[Claim]:
    """The claims of the token that job rows show, in the order of claims (I11)."""
    rank = {queue: place for place, queue in reversed(list(enumerate(queues)))}
    last = len(queues)  # a repeated claim also returns what lies in queues that it did not name

    def place(row: Row) -> tuple[int, int, tuple[int], int]:
        due = _microseconds(row[_RUN_AT])
        return rank.get(row[_QUEUE], last), -row[_PRIORITY], due, row[_SEQ]

    times = _Times()
    return [_read_claim(row, token, times) for row in sorted(rows, key=place)]


def read_places(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, int], tuple[datetime, int]]]:
    """Queue and priority of job rows, each with its place there; none of one that is damaged."""
    times = _Times()
    for row in rows:
        with suppress(OverflowError):
            yield (row[_QUEUE], row[_PRIORITY]), (times[row[_RUN_AT]], row[_SEQ])


def _read_claim(row: Row, token: str, times: _Times) -> Claim:
    job, damage = _read_job(row, times)
    return Claim(
        job=job,
        hold=Hold(job.id, job.serial, token),
        attempt=job.attempt,
        stalls=job.stalls,
        lease=row[_LEASE],
        damage=damage,
    )


def read_job(row: Row) -> Job[bytes]:
    """The job that a job row shows, with stand-ins for what cannot be read."""
    return _read_job(row, _Times())[0]


def read_whole(row: Row) -> ReadJob:
    """The same, and what of it could not be read (None: all was well)."""
    return _read_job(row, _Times())


def read_past(row: Row) -> PastAttempt:
    """The attempt that a row of a history shows, with a stand-in for how it ended."""
    attempt, serial, started_at, ended_at, worker, text = row
    how = read_how(text)
    return PastAttempt(
        attempt=attempt,
        serial=serial,
        outcome=how.outcome,
        started_at=nearest(started_at),
        ended_at=nearest(ended_at),
        worker=worker or "",
        kind=how.kind,
        message=how.message,
    )


def read_how(text: str) -> Tried:
    """How an attempt ended, with a stand-in for a text that cannot be read."""
    try:
        return read_tried(text)
    except UNREADABLE:
        return _UNKNOWN


def _read_job(row: Row, times: _Times) -> ReadJob:
    (
        queue,
        priority,
        run_at,
        _,
        _,
        job_id,
        name,
        state,
        max_attempts,
        timeout,
        headers,
        attempt,
        stalls,
        serial,
        created_at,
        updated_at,
        finished_at,
        error,
        result,
        progress,
        cancel_requested,
        key,
        key_until,
        key_mode,
        key_period,
        key_max_wait,
        limits,
        payload,
        *_,
    ) = row
    wrong: list[str] = []
    least = 1 if state == _PROCESSING else 0
    job: Job[bytes] = Job(  # calling `Job[bytes]` takes six times as long
        id=job_id,
        name=name,
        queue=queue,
        payload=payload,
        priority=priority,
        max_attempts=max_attempts,
        timeout=timeout,
        headers=_NO_HEADERS
        if headers is None
        else _read(wrong, "headers", headers, read_headers, _NO_HEADERS),
        state=_STATES.get(state) or _read(wrong, "state", state, _no_state, State.FAILED),
        attempt=attempt if attempt >= least else _read(wrong, "attempt", attempt, _no_count, least),
        stalls=stalls if stalls >= 0 else _read(wrong, "stalls", stalls, _no_count, 0),
        serial=serial,
        run_at=times.get(run_at) or _read(wrong, "run_at", run_at, times.__getitem__, _ZERO),
        created_at=times.get(created_at)
        or _read(wrong, "created_at", created_at, times.__getitem__, _ZERO),
        updated_at=times.get(updated_at)
        or _read(wrong, "updated_at", updated_at, times.__getitem__, _ZERO),
        finished_at=None
        if finished_at is None
        else _read(wrong, "finished_at", finished_at, times.__getitem__, _ZERO),
        error=None if error is None else _read(wrong, "error", error, _failure, None),
        result=result,
        progress=progress,
        cancel_requested=cancel_requested,
        unique=None
        if key is None
        else _read(
            wrong, "unique", (key, key_until, key_mode, key_period, key_max_wait), _unique, None
        ),
        limits=() if limits is None else _read(wrong, "limits", limits, _limits, ()),
    )
    return job, "; ".join(wrong) or None


def _read(wrong: list[str], field: str, value: Any, decode: Callable[[Any], T], stand_in: T) -> T:
    """The value, or the stand-in for one that cannot be read; `wrong` then tells of it."""
    try:
        return decode(value)
    except UNREADABLE as error:
        wrong.append(f"{field}: {error}")
        return stand_in


def _no_state(number: int) -> State:
    raise ValueError(f"no state has the number {number}")


def _no_count(value: int) -> int:
    raise ValueError(f"{value} is no number of events")


def _unique(columns: tuple[object, ...]) -> UniqueKey | None:
    names = ("key", "until", "mode", "period", "max_wait")
    return msgspec.convert(dict(zip(names, columns, strict=True)), UniqueKey)


def _limits(keys: object) -> tuple[str, ...]:
    return msgspec.convert(keys, tuple[str, ...])


def _failure(text: str) -> Failure | None:
    return read_failure(text)
