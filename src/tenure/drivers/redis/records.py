"""How the record of a job becomes a `Job`. Pure.

A record that cannot be read harms only itself (I12): what of it is damaged gets a stand-in, and a
note that tells.
"""

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from tenure.drivers.redis.requests import MODES, STATES, UNIQUE
from tenure.outcomes import Failure
from tenure.types import Job, UniqueKey

__all__ = ["MILLION", "UNREADABLE", "Mark", "Read", "moment", "read_jobs", "read_mark", "sized"]

MILLION = 1_000_000
_NO_HEADERS: Mapping[str, str] = {}
UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, IndexError, struct.error)


class Mark(Struct, gc=False):
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


_NUMBERS = struct.Struct(">BBBb6Q8x5I16s16s")
_EXTRAS, _HAS_TAIL = 2, 8 + 16  # where a mark says so, and its bits for unique key and limits
_STAND_IN = b"-" * 16  # the content of a mark that a claim had to make up


def read_mark(packed: bytes) -> Mark:
    """Read a mark: fixed numbers, then texts behind their lengths. What was settled, and who
    made the hold when, is passed over.

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
    return Mark(*_NUMBERS.unpack_from(packed), *texts)


def sized(data: bytes, at: int) -> bytes:
    """The part that stands behind its length."""
    end = at + 2 + (data[at] << 8 | data[at + 1])
    if end > len(data):
        raise ValueError("it is shorter than it says")
    return data[at + 2 : end]


def _tail(tail: bytes) -> tuple[UniqueKey | None, tuple[str, ...]]:
    """The unique key and the limits behind a mark."""
    packed = sized(tail, 0)
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
    keys = sized(tail, 2 + len(packed))
    limits: list[str] = []
    at = 0
    while at < len(keys):
        key = sized(keys, at)
        limits.append(key.decode())
        at += 2 + len(key)
    return unique, tuple(limits)


_heads = msgspec.json.Decoder(tuple[int | None, float | None, dict[str, str]])
_failures = msgspec.json.Decoder(Failure)


class Read(Struct, gc=False):
    """One job of an answer, with its mark and what is wrong with it."""

    mark: Mark
    job: Job[bytes]
    damage: str | None


def moment(instant: int) -> datetime:
    """The time of whole microseconds since the epoch.

    Through a float, which is exact to the microsecond until the year 2242.
    """
    return datetime.fromtimestamp(instant / MILLION, UTC)


class _Moments(dict[int, datetime]):
    """The times of one answer: most come more than once, and making one takes long."""

    def __missing__(self, instant: int) -> datetime:
        made = self[instant] = moment(instant)
        return made


def read_jobs(reply: Sequence[Any]) -> list[Read]:
    """The jobs of an answer of parts/showing.lua; one whose mark is unreadable is left out."""
    _, ids, packed, blobs, more = reply[:5]
    extras = {entry[0] - 1: entry[1:] for entry in more}
    none = (None, None, None)
    moments = _Moments()
    found: list[Read] = []
    for n, (job_id, mark, blob) in enumerate(zip(ids, packed, blobs, strict=True)):
        try:
            whole = read_mark(mark)
            found.append(_job(job_id.decode(), whole, blob, extras.get(n, none), moments))
        except UNREADABLE:
            continue
    return found


def _job(
    job_id: str,
    mark: Mark,
    blob: bytes | None,
    extras: Sequence[bytes | None],
    moments: _Moments,
) -> Read:
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
        except UNREADABLE as cause:
            wrong.append(f"unique key or limits: {cause}")
    if head:
        try:
            max_attempts, timeout, headers = _heads.decode(head)
        except UNREADABLE as cause:
            wrong.append(f"headers: {cause}")
    if failure is not None:
        try:
            error = _failures.decode(failure)
        except UNREADABLE as cause:
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
    return Read(mark, job, "; ".join(wrong) or None)
