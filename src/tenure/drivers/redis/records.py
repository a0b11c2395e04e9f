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
from tenure.states import State
from tenure.types import Job, UniqueKey

__all__ = [
    "MILLION",
    "UNREADABLE",
    "Head",
    "Read",
    "content_of",
    "moment",
    "nearest",
    "read_each",
    "read_head",
    "read_jobs",
    "sized",
]

MILLION = 1_000_000
_NO_HEADERS: Mapping[str, str] = {}
_NO_EXTRAS = (None, None, None)
UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, IndexError, struct.error)


class Head(Struct, gc=False):
    """What a mark says about state and holds; alike for the jobs of one claim.

    `token` is that of the current hold. What was settled, and who made the hold when, is passed
    over.
    """

    state: State
    cancel: bool
    has_tail: bool
    finished_at: int
    until: int
    lease: int
    attempt: int
    stalls: int
    serial: int
    token: str


class Kind(Struct, gc=False):
    """What a mark says that never changes; alike for jobs of one kind."""

    priority: int
    queue: str
    name: str
    has_tail: bool
    unique: UniqueKey | None
    limits: tuple[str, ...]
    damage: str | None


# As lua/parts/marks.lua lays it out.
_FIXED = struct.Struct(">QQQ16x4x8sH")  # updated, due, created, content, length of the head
_HEAD, _KIND = struct.Struct(">BBB3Q4IH"), struct.Struct(">bH")
_HAS_TAIL = 8 + 16  # of the extras: the bits for unique key and limits
_STAND_IN = b"-" * 8  # the content of a mark that a claim had to make up


def read_head(mark: bytes) -> Head:
    """The head of a mark."""
    if len(mark) < _FIXED.size:
        raise ValueError("it is too short")
    return _head(mark[_FIXED.size : _kind_at(mark)])


def _kind_at(mark: bytes) -> int:
    return _FIXED.size + (mark[_FIXED.size - 2] << 8 | mark[_FIXED.size - 1])


def _head(text: bytes) -> Head:
    fields: tuple[int, ...] = _HEAD.unpack_from(text)
    state, cancel, extras, finished_at, until, lease, attempt, stalls, serial, _, held = fields
    token_at = _HEAD.size + 1
    token = text[token_at : token_at + text[_HEAD.size]].decode() if held else ""
    return Head(
        STATES[state],
        cancel != 0,
        extras & _HAS_TAIL != 0,
        finished_at,
        until,
        lease,
        attempt,
        stalls,
        serial,
        token,
    )


def _kind(text: bytes) -> Kind:
    priority, length = _KIND.unpack_from(text)
    queue = sized(text, _KIND.size - 2)
    name = sized(text, _KIND.size + length)
    tail = text[_KIND.size + length + 2 + len(name) :]
    unique: UniqueKey | None = None
    limits: tuple[str, ...] = ()
    damage: str | None = None
    if tail:
        try:
            unique, limits = _tail(tail)
        except UNREADABLE as cause:
            damage = f"unique key or limits: {cause}"
    return Kind(priority, queue.decode(), name.decode(), bool(tail), unique, limits, damage)


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


_options = msgspec.json.Decoder(tuple[int | None, float | None, dict[str, str]])
_failures = msgspec.json.Decoder(Failure)


class Read(Struct, gc=False):
    """One job of an answer, with the head of its mark and what is wrong with it."""

    head: Head
    job: Job[bytes]
    damage: str | None


def moment(instant: int) -> datetime:
    """The time of whole microseconds since the epoch.

    Through a float, which is exact to the microsecond until the year 2242.
    """
    return datetime.fromtimestamp(instant / MILLION, UTC)


def nearest(instant: int) -> datetime:
    """As `moment`; the first or the last time that there is for what lies beyond it."""
    try:
        return moment(instant)
    except UNREADABLE:
        ends = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        return ends[instant > 0]


class _Moments(dict[int, datetime]):
    """The times of one answer: most come more than once, and making one takes long."""

    def __missing__(self, instant: int) -> datetime:
        made = self[instant] = moment(instant)
        return made


class _Heads(dict[bytes, Head]):
    """The heads of one answer, likewise."""

    def __missing__(self, text: bytes) -> Head:
        made = self[text] = _head(text)
        return made


class _Kinds(dict[bytes, Kind]):
    """The kinds of one answer, likewise."""

    def __missing__(self, text: bytes) -> Kind:
        made = self[text] = _kind(text)
        return made


class _Answer:
    """What the jobs of one answer have in common."""

    def __init__(self) -> None:
        self.moments = _Moments()
        self.heads = _Heads()
        self.kinds = _Kinds()


def read_jobs(reply: Sequence[Any]) -> list[Read]:
    """The jobs of an answer of parts/showing.lua; one whose mark is unreadable is left out."""
    return [read for read in read_each(reply) if read is not None]


def read_each(reply: Sequence[Any]) -> list[Read | None]:
    """The same with None in the place of each that is unreadable."""
    _, ids, packed, blobs, more = reply[:5]
    extras = {entry[0] - 1: entry[1:] for entry in more}
    answer = _Answer()
    found: list[Read | None] = []
    for n, (job_id, mark, blob) in enumerate(zip(ids, packed, blobs, strict=True)):
        try:
            found.append(_job(job_id.decode(), mark, blob, extras.get(n, _NO_EXTRAS), answer))
        except UNREADABLE:
            found.append(None)
    return found


def content_of(mark: bytes) -> bytes:
    """The content digest in a mark that could be read."""
    content: bytes = _FIXED.unpack_from(mark)[3]
    return content


def _job(
    job_id: str,
    mark: bytes,
    blob: bytes | None,
    extras: Sequence[bytes | None],
    answer: _Answer,
) -> Read:
    updated_at, run_at, created_at, content, length = _FIXED.unpack_from(mark)
    kind_at = _FIXED.size + length
    head, kind = answer.heads[mark[_FIXED.size : kind_at]], answer.kinds[mark[kind_at:]]
    if kind.has_tail and not head.has_tail:
        raise ValueError("it has another length than it says")
    wrong = [] if content != _STAND_IN else ["its record could not be read"]
    if blob is None:
        wrong.append("its payload is gone")
    if kind.damage is not None:
        wrong.append(kind.damage)
    elif head.has_tail and not kind.has_tail:
        wrong.append("unique key and limits are gone")
    options, _, payload = (blob or b"\n").partition(b"\n")
    max_attempts: int | None = None
    timeout: float | None = None
    headers = _NO_HEADERS
    error: Failure | None = None
    failure, result, progress = extras
    if options:
        try:
            max_attempts, timeout, headers = _options.decode(options)
        except UNREADABLE as cause:
            wrong.append(f"headers: {cause}")
    if failure is not None:
        try:
            error = _failures.decode(failure)
        except UNREADABLE as cause:
            wrong.append(f"error: {cause}")
    moments = answer.moments
    job = Job(
        id=job_id,
        name=kind.name,
        queue=kind.queue,
        payload=payload,
        priority=kind.priority,
        max_attempts=max_attempts,
        timeout=timeout,
        headers=headers,
        state=head.state,
        attempt=head.attempt,
        stalls=head.stalls,
        serial=head.serial,
        run_at=moments[run_at],
        created_at=moments[created_at],
        updated_at=moments[updated_at],
        finished_at=moments[head.finished_at] if head.finished_at else None,
        error=error,
        result=result,
        progress=progress,
        cancel_requested=head.cancel,
        unique=kind.unique,
        limits=kind.limits,
    )
    return Read(head, job, "; ".join(wrong) or None)
