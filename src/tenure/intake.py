"""The limits on what a dispatch may contain, alike on every store. Pure.

Each check raises `InvalidJob` with the path of the offending place; nothing was stored then.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeGuard, TypeVar, cast

from tenure.errors import InvalidConfiguration, InvalidJob
from tenure.payload_codec import PayloadCodec
from tenure.shown import shown
from tenure.types import Retention, UniqueKey

__all__ = [
    "DEFAULT_PAYLOAD_LIMIT",
    "Unique",
    "check_at",
    "check_codec",
    "check_delay",
    "check_headers",
    "check_key",
    "check_limits",
    "check_max_attempts",
    "check_name",
    "check_priority",
    "check_retention",
    "check_timeout",
    "check_unique",
    "is_plain",
    "seconds",
]

DEFAULT_PAYLOAD_LIMIT = 1024 * 1024
MAX_HEADERS_BYTES = 16 * 1024
MAX_LIMITS = 8

_TEN_YEARS = timedelta(days=3653)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Unique:
    """What may exist once: `dispatch(..., unique=Unique("report:42", ...))`.

    While another job holds `key`, a dispatch stores nothing and gives a handle to that job, with
    `created` False. The key is the store's: jobs of all names and queues share it. It is held
    `until` the job is "done", however it ends (the default), or first "started"; with `period`
    (seconds or `timedelta`), no longer than that from its dispatch on.

    `mode` is what a refused dispatch does: "keep" nothing; "replace" gives a holder that still
    waits its own payload and due time; "debounce" pushes the time of one that waits back to its
    own. `max_wait` (seconds or `timedelta`) bounds how long both may put a job off, from the
    holder's dispatch on. A holder that runs, or has another name, is left alone. "throttle" lets
    one job through in each `period`, whatever becomes of it.
    """

    key: str
    _: KW_ONLY
    until: Literal["done", "started"] = "done"
    period: float | timedelta | None = None
    mode: Literal["keep", "replace", "debounce", "throttle"] = "keep"
    max_wait: float | timedelta | None = None


def seconds(option: str, value: object) -> float:
    """A duration given as seconds or `timedelta`, in seconds.

    Raises `InvalidConfiguration` naming the option for anything else, NaN and infinities.
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidConfiguration(option, value, "must be seconds or a timedelta")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        raise InvalidConfiguration(option, number, "must be a finite number of seconds")
    return number


def whole(option: str, value: object, least: int, most: int) -> int:
    """A whole number within bounds. Raises `InvalidConfiguration` naming the option."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidConfiguration(
            option, value, f"must be a whole number from {least:,} to {most:,}"
        )
    return value


def positive(option: str, value: object) -> float:
    """As `seconds`, above 0 and at most ten years."""
    number = seconds(option, value)
    if number <= 0:
        raise InvalidConfiguration(option, value, "must be greater than 0 seconds")
    return _bounded(option, value, number)


def not_negative(option: str, value: object) -> float:
    """As `seconds`, from 0 to ten years."""
    number = seconds(option, value)
    if number < 0:
        raise InvalidConfiguration(option, value, "must not be negative")
    return _bounded(option, value, number)


def _bounded(option: str, value: object, number: float) -> float:
    if number > _TEN_YEARS.total_seconds():  # far more, and a store's dates would run out
        raise InvalidConfiguration(option, value, "must be at most ten years")
    return number


def check_codec(value: object) -> PayloadCodec:
    """Refuse what would fail only at a dispatch, such as a key or the class itself."""
    calls = all(callable(getattr(value, verb, None)) for verb in ("encode", "decode"))
    key = getattr(value, "digest_key", None)
    if not calls or not isinstance(key, bytes) or not 16 <= len(key) <= 64:
        # Its type alone: it may be a key.
        raise InvalidConfiguration(
            "codec", type(value).__name__, "must be a PayloadCodec, such as tenure.Fernet(key)"
        )
    return cast("PayloadCodec", value)


def is_plain(value: object) -> TypeGuard[str]:
    """Whether it is a name as nearly all are, so that it need not be looked at any closer."""
    return (
        isinstance(value, str) and value.isascii() and value.isprintable() and 0 < len(value) < 257
    )


def check_name(path: str, value: object) -> str:
    """A job name, queue name or id: 1 to 256 bytes of UTF-8 without control characters."""
    return _text(path, value, 256)


def _text(path: str, value: object, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidJob(path, f"must be text, got {type(value).__name__}")
    if is_plain(value) and len(value) <= most:
        return value
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidJob(path, "must not contain a lone surrogate") from None
    if not 1 <= size <= most:
        raise InvalidJob(path, f"must be 1 to {most} bytes of UTF-8, got {size}")
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for char in value):
        raise InvalidJob(path, f"must not contain control characters, got {value!a}")
    return value


def check_delay(path: str, value: object) -> float:
    """A delay in seconds from the store's now; a negative one means now."""
    try:
        delay = seconds(path, value)
    except InvalidConfiguration as error:
        if error.value == -math.inf:
            return 0.0
        raise InvalidJob(path, f"{error.rule}, got {shown(value)}") from None
    if delay > _TEN_YEARS.total_seconds():
        raise InvalidJob(path, f"must be at most ten years, got {shown(value)}")
    return max(0.0, delay)


def check_at(path: str, value: object, now: datetime) -> datetime:
    """An aware instant from 1970 to ten years ahead, returned in UTC."""
    if not isinstance(value, datetime):
        raise InvalidJob(path, f"must be a datetime, got {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidJob(
            path, f"must be aware, got the naive {value!r}; give it a tzinfo, such as datetime.UTC"
        )
    try:
        instant = value.astimezone(UTC)
    except OverflowError:
        raise InvalidJob(path, f"must lie between 1970 and ten years ahead, got {value}") from None
    if not _EPOCH <= instant <= now + _TEN_YEARS:
        raise InvalidJob(path, f"must lie between 1970 and ten years ahead, got {value}")
    return instant


def check_priority(path: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -100 <= value <= 100:
        raise InvalidJob(path, f"must be a whole number from -100 to 100, got {shown(value)}")
    return value


def check_max_attempts(path: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
        raise InvalidJob(path, f"must be a whole number from 1 to 10,000, got {shown(value)}")
    return value


def check_timeout(path: str, value: object) -> float:
    try:
        timeout = seconds(path, value)
    except InvalidConfiguration as error:
        raise InvalidJob(path, f"{error.rule}, got {shown(value)}") from None
    if timeout <= 0:
        raise InvalidJob(path, f"must be greater than 0 seconds, got {shown(value)}")
    return timeout


def check_headers(path: str, value: object) -> Mapping[str, str]:
    """Text by name: names as job names, all together at most 16 KiB."""
    if not isinstance(value, Mapping):
        raise InvalidJob(path, f"must map names to text, got {type(value).__name__}")
    total = 0
    headers: dict[str, str] = {}
    for key, text in cast("Mapping[object, object]", value).items():
        name = check_name(f"{path} name {shown(key)}", key)
        place = f"{path}[{name!r}]"
        if not isinstance(text, str):
            raise InvalidJob(place, f"must be text, got {type(text).__name__}")
        if "\0" in text:
            raise InvalidJob(place, "must not contain a NUL character")
        try:
            total += len(name.encode()) + len(text.encode("utf-8"))
        except UnicodeEncodeError:
            raise InvalidJob(place, "must not contain a lone surrogate") from None
        headers[name] = text
    if total > MAX_HEADERS_BYTES:
        raise InvalidJob(path, f"must be at most {MAX_HEADERS_BYTES:,} bytes, got {total:,}")
    return headers


def check_unique(path: str, value: object) -> UniqueKey:
    """A unique key, alone or with its rules in a `Unique`."""
    if isinstance(value, str):
        return UniqueKey(key=_text(path, value, 512))
    if not isinstance(value, Unique):
        raise InvalidJob(path, f"must be text or a Unique, got {type(value).__name__}")
    unique = UniqueKey(
        key=_text(f"{path}.key", value.key, 512),
        until=_one_of(f"{path}.until", value.until, ("done", "started")),
        period=_span(f"{path}.period", value.period),
        mode=_one_of(f"{path}.mode", value.mode, ("keep", "replace", "debounce", "throttle")),
        max_wait=_span(f"{path}.max_wait", value.max_wait),
    )
    if unique.mode == "throttle" and unique.period is None:
        raise InvalidJob(f"{path}.period", "must be given with mode='throttle'")
    if unique.mode == "throttle" and unique.until == "started":
        raise InvalidJob(f"{path}.until", "must not be 'started' with mode='throttle'")
    if unique.max_wait is not None and unique.mode not in ("replace", "debounce"):
        raise InvalidJob(f"{path}.max_wait", "goes with mode='replace' or mode='debounce' only")
    return unique


T = TypeVar("T", bound=str)


def _one_of(path: str, value: T, choices: tuple[str, ...]) -> T:
    if value not in choices:
        raise InvalidJob(path, f"must be one of {', '.join(choices)}, got {shown(value)}")
    return value


def _span(path: str, value: float | timedelta | None) -> float | None:
    return None if value is None else min(check_timeout(path, value), _TEN_YEARS.total_seconds())


def check_key(path: str, value: object) -> str:
    """A key for limits: 1 to 256 bytes of UTF-8 without control characters and without `*`."""
    key = check_name(path, value)
    if "*" in key:
        raise InvalidJob(path, f"must not contain *, which stands for many keys, got {key!r}")
    return key


def check_limits(path: str, value: object) -> tuple[str, ...]:
    """The keys that a job counts against, at most 8; sorted, each once."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidJob(path, f"must be a list of keys, such as ['api'], got {shown(value)}")
    given = list(cast("Iterable[object]", value))
    keys = {check_key(f"{path}[{index}]", key) for index, key in enumerate(given)}
    if len(keys) > MAX_LIMITS:
        raise InvalidJob(path, f"must be at most {MAX_LIMITS} keys, got {len(keys)}")
    return tuple(sorted(keys))


def check_retention(retention: object) -> Retention:
    """A worker's `retention`. Raises `InvalidConfiguration` naming the field."""
    if not isinstance(retention, Retention):
        raise InvalidConfiguration("retention", retention, "must be a tenure.Retention, or None")
    for field in ("completed", "failed", "cancelled"):
        age: object = getattr(retention, field)
        if age is not None:
            not_negative(f"retention.{field}", age)
    for field in ("completed_count", "completed_bytes"):
        number: object = getattr(retention, field)
        if number is not None:
            whole(f"retention.{field}", number, 0, 2**53)
    return retention
