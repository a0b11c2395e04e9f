"""What a running job says of itself: how far it is, and its newest lines. Values, and their JSON.

Stored as one small JSON object, so that other languages can read and write it.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import Struct

from tenure.errors import SerializationError

__all__ = ["LogLine", "Progress", "progress_bytes", "progress_from"]


class LogLine(Struct, frozen=True, kw_only=True):
    """A line that a handler logged; `at` is its worker's time."""

    at: datetime
    text: str


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the attempts of a job have said so far, the newest last.

    `fraction` is from 0 to 1, None where only lines were logged; `log` has at most 100 lines. A new
    attempt changes what it says itself, and leaves the rest as the one before it had left it.
    """

    fraction: float | None = None
    note: str | None = None
    log: tuple[LogLine, ...] = ()


progress_bytes: Callable[[Progress], bytes] = msgspec.json.encode
_decode = msgspec.json.Decoder(Progress).decode


def progress_from(data: bytes) -> Progress:
    """Decode what `progress_bytes` made. Raises `SerializationError` for anything else."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SerializationError(f"not the progress of a job: {error}", path="progress") from error
