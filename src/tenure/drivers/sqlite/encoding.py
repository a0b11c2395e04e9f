"""How values are stored: states as small numbers, times as whole microseconds, text as JSON.

Pure. What cannot be read back raises here; `rows.py` decides what stands in for it.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from tenure.outcomes import Failure
from tenure.presence import WorkerInfo
from tenure.states import State
from tenure.types import UniqueKey

__all__ = [
    "BLOCKED",
    "CANCELLED",
    "COMPLETED",
    "FAILED",
    "NUMBERS",
    "PENDING",
    "PROCESSING",
    "STATES",
    "failure_text",
    "json_list",
    "micros",
    "moment",
    "nearest",
    "read_failure",
    "read_headers",
    "read_limits",
    "read_unique",
    "read_worker",
    "span",
    "text_of",
    "writable",
]

# By their number in the table, which is stored for ever: append, never reorder.
STATES = (
    State.PENDING,
    State.BLOCKED,
    State.PROCESSING,
    State.COMPLETED,
    State.FAILED,
    State.CANCELLED,
)
NUMBERS: Mapping[State, int] = {state: number for number, state in enumerate(STATES)}
PENDING, BLOCKED, PROCESSING = (
    NUMBERS[State.PENDING],
    NUMBERS[State.BLOCKED],
    NUMBERS[State.PROCESSING],
)
COMPLETED, FAILED, CANCELLED = (
    NUMBERS[State.COMPLETED],
    NUMBERS[State.FAILED],
    NUMBERS[State.CANCELLED],
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_encoder = msgspec.json.Encoder()
_failures = msgspec.json.Decoder(Failure)
_headers = msgspec.json.Decoder(dict[str, str])
_limits = msgspec.json.Decoder(tuple[str, ...])
_uniques = msgspec.json.Decoder(UniqueKey)
_workers = msgspec.json.Decoder(WorkerInfo)

read_failure: Callable[[bytes | str], Failure] = _failures.decode
read_headers: Callable[[bytes | str], dict[str, str]] = _headers.decode
read_limits: Callable[[bytes | str], tuple[str, ...]] = _limits.decode
read_unique: Callable[[bytes | str], UniqueKey] = _uniques.decode
read_worker: Callable[[bytes | str], WorkerInfo] = _workers.decode


def micros(instant: datetime) -> int:
    """Whole microseconds since the epoch; exact, which a float is not."""
    return (instant - _EPOCH) // _MICROSECOND


def moment(instant: int) -> datetime:
    """The inverse of `micros`.

    Through a float, which is exact to the microsecond until the year 2242 and twice as fast as
    adding to the epoch. Raises what `datetime.fromtimestamp` does for what is no time at all.
    """
    return datetime.fromtimestamp(instant / 1_000_000, UTC)


def nearest(instant: int) -> datetime:
    """As `moment`; the first or the last time that there is for what lies beyond it."""
    try:
        return moment(instant)
    except (ValueError, OverflowError, OSError):
        ends = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        return ends[instant > 0]


def span(seconds: float) -> int:
    """Whole microseconds of a duration."""
    return round(seconds * 1_000_000)


def text_of(value: object) -> str:
    """A struct or mapping as JSON text."""
    return _encoder.encode(value).decode()


def json_list(values: Iterable[object]) -> str:
    """What a statement takes as a JSON array."""
    return _encoder.encode(list(values)).decode()


def failure_text(failure: Failure) -> str:
    """A failure as JSON text, whatever its message holds.

    One that cannot be stored would leave its job running for ever.
    """
    try:
        return text_of(failure)
    except UnicodeEncodeError:
        parts = msgspec.structs.asdict(failure)
        return text_of(
            {
                name: writable(value) if isinstance(value, str) else value
                for name, value in parts.items()
            }
        )


def writable(text: str) -> str:
    """The text as UTF-8 can have it.

    A lone surrogate (an exception about a file name, say) is none; it is written as an escape.
    """
    return text.encode("utf-8", "backslashreplace").decode()
