"""What the machine puts into its calls: few ids, queues and instants, so that they meet often."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retried,
    Snoozed,
)
from tenure.standing import Limit
from tenure.states import State
from tenure.types import JobFilter, Move, NewJob, QueueLimit, Retention, UniqueKey

__all__ = [
    "ALL_QUEUES",
    "CHANGES",
    "DATA",
    "FAILED",
    "FILTERS",
    "JOBS",
    "KEYS",
    "KEYS_OF_JOBS",
    "LEASES",
    "LIMITS",
    "LIMIT_KEYS",
    "MOVES",
    "OUTCOMES",
    "PAUSES",
    "PRIORITIES",
    "QUEUES",
    "QUEUE_LIMITS",
    "RECLAIM_DELAYS",
    "RETENTIONS",
    "T0",
    "UNIQUES",
    "after",
    "batches",
    "changed",
    "ids",
    "undated",
    "under_the_id_of",
]

T = TypeVar("T")

T0 = datetime(2030, 1, 1, tzinfo=UTC)

_MICROSECOND = 0.000001


def after(seconds: float) -> datetime:
    """The instant that many seconds after `T0`."""
    return T0 + timedelta(seconds=seconds)


def batches(
    items: st.SearchStrategy[T], most: int, *, by: Callable[[T], object] | None = None
) -> st.SearchStrategy[Sequence[T]]:
    """One item or a few, rarely none; no two alike in `by`."""
    return st.lists(items, min_size=0, max_size=most, unique_by=by)


_NAMES = ["9", "10", "b", "B", "a:1", "é"]


def ids(number: int) -> str:
    """An id for each number; they sort against their order, as text and as numbers."""
    return _NAMES[number] if number < len(_NAMES) else str(1000 - number)


QUEUES = st.sampled_from(["default", "default", "Default", "q:1"])
ALL_QUEUES = tuple(QueueLimit(name, 100) for name in ("default", "q:1", "Default"))
DATA = st.sampled_from([b"null", b"", b"x" * 100, b"\x00\xff'; --", b'{"a": 1e2}'])
LEASES = st.sampled_from([30.0, 1.0, 60.5, _MICROSECOND])
PAUSES = st.sampled_from(
    [_MICROSECOND, 0.5, 1.0, 29.999999, 30.0, 31.0, 59.999999, 60.0, 61.0, 3600.0]
)
_DELAYS = st.sampled_from([0.0, 1.0, 30.0, 60.000001, 1e6])
_TEXTS = st.sampled_from(["", "it broke", "line\nline\t'; --", "\u202e\U0001f600"])
INSTANTS = st.sampled_from([-3600.0, 0.0, 30.0, 60.000001, 7200.0, 5e9]).map(after)
PRIORITIES = st.sampled_from([0, 0, 0, 1, -1, 100, -100])

KEYS = ("a", "A", "c-1", "c-2", "rate")
_KEY = st.sampled_from(KEYS)
_PERIODS = st.sampled_from([_MICROSECOND, 1.0, 30.0, 60.0])
UNIQUES = st.one_of(
    st.builds(
        UniqueKey,
        key=_KEY,
        until=st.sampled_from(["done", "done", "started"]),
        period=st.none() | st.none() | _PERIODS,
        mode=st.just("keep"),
    ),
    st.builds(
        UniqueKey,
        key=_KEY,
        until=st.sampled_from(["done", "done", "started"]),
        period=st.none() | st.none() | _PERIODS,
        mode=st.sampled_from(["replace", "debounce"]),
        max_wait=st.sampled_from([None, 0.0, 30.0, 61.0]),
    ),
    st.builds(UniqueKey, key=_KEY, period=_PERIODS, mode=st.just("throttle")),
)
KEYS_OF_JOBS = st.sampled_from(
    [(), (), (), ("a",), ("a",), ("c-1",), ("c-2",), ("rate",), ("a", "c-1"), ("A", "a", "rate")]
)
LIMIT_KEYS = st.sampled_from(["a", "A", "c-*", "c-1", "rate", "rate", "*"])
_PLACES = st.sampled_from([1, 1, 2])
LIMITS = st.one_of(
    st.builds(Limit, key=LIMIT_KEYS, concurrent=_PLACES),
    st.builds(Limit, key=LIMIT_KEYS, per_second=_PLACES, concurrent=st.none() | _PLACES),
)

JOBS = st.builds(
    NewJob,
    id=st.just(""),  # the machine gives one
    name=st.sampled_from(["work", "mail"]),
    queue=QUEUES,
    payload=DATA,
    delay=st.none() | st.none() | _DELAYS,
    at=st.none() | st.none() | st.none() | INSTANTS,
    priority=PRIORITIES,
    max_attempts=st.sampled_from([None, None, 1, 3]),
    timeout=st.sampled_from([None, None, 2.5]),
    unique=st.none() | st.none() | UNIQUES,
    limits=KEYS_OF_JOBS,
    headers=st.sampled_from([{}, {}, {"n": "1", "": "é"}]),
)

QUEUE_LIMITS = st.lists(
    st.builds(QueueLimit, QUEUES, st.integers(0, 3) | st.just(100)),
    min_size=1,
    max_size=3,
    unique_by=lambda limit: limit.name,
).map(tuple)

_FAILURES = st.builds(
    Failure,
    kind=st.sampled_from(["error", "timeout"]),
    message=_TEXTS,
    trace=_TEXTS,
    at=INSTANTS,
    attempt=st.integers(0, 3),
)
FAILED = Retried(0.0, Failure(kind="error", message="it broke", at=T0, attempt=1))
_STARTED = st.sampled_from([True, True, False])
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Completed, st.none() | DATA),
    st.builds(Retried, _DELAYS, _FAILURES),
    st.builds(Snoozed, _DELAYS),
    st.builds(Released, _TEXTS, st.none() | _DELAYS),
    st.builds(Failed, _FAILURES, _STARTED),
    st.builds(Cancelled, _TEXTS, _STARTED),
)

# What makes another content of a dispatch, one part at a time.
CHANGES: Sequence[Mapping[str, object]] = [
    {"name": "other"},
    {"queue": "other"},
    {"payload": b"other"},
    {"delay": 2.0},
    {"at": after(2.0)},
    {"priority": 7},
    {"max_attempts": 7},
    {"timeout": 7.0},
    {"headers": {"other": ""}},
    {"unique": UniqueKey(key="A", until="started")},
    {"limits": ("A", "c-2")},
]


def changed(job: NewJob, change: Mapping[str, object]) -> NewJob:
    """The job with another content."""
    return replace(job, **change)


def undated(job: NewJob) -> NewJob:
    """The job with nothing that ends by itself."""
    if job.unique is None or job.unique.period is None:
        return job
    mode = "keep" if job.unique.mode == "throttle" else job.unique.mode
    return replace(job, unique=replace(job.unique, period=None, mode=mode))


def under_the_id_of(job: NewJob, other: NewJob) -> NewJob:
    """The job with the id of the other."""
    return replace(job, id=other.id)


RECLAIM_DELAYS = st.sampled_from([(0.0,), (0.0, 2.0, 10.0), (1.5, 60.0)])
MOVES = st.builds(
    Move,
    job_id=st.just(""),  # the machine gives one
    queue=st.none() | QUEUES,
    at=st.none() | INSTANTS,
    priority=st.none() | PRIORITIES,
)
FILTERS = st.builds(
    JobFilter,
    state=st.none() | st.sampled_from(State),
    queue=st.none() | QUEUES,
    name=st.sampled_from([None, None, "work", "mail"]),
)
_AGES = st.sampled_from([None, 0.0, 30.0, 60.0, 3600.0])
RETENTIONS = st.builds(
    Retention,
    completed=_AGES,
    completed_count=st.sampled_from([None, 0, 1, 2]),
    completed_bytes=st.sampled_from([None, None, 0, 1, 4, 8, 300]),
    failed=_AGES,
    cancelled=_AGES,
)
