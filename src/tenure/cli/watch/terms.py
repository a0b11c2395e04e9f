"""What a worker program asks of its processes, and what they tell. Values, and their bytes.

They travel over a socket between processes of one program, each behind four bytes of its length.
"""

import struct
from collections.abc import Sequence

import msgspec
from msgspec import Struct

__all__ = [
    "HEAD",
    "Asked",
    "Family",
    "Sample",
    "Told",
    "length_of",
    "read_asked",
    "read_told",
    "sent",
]

HEAD = 4  # bytes
_HEAD = struct.Struct(">I")


class Sample(Struct, frozen=True, array_like=True):
    """One number of a metric."""

    name: str
    labels: dict[str, str]
    value: float


class Family(Struct, frozen=True, array_like=True):
    """A metric with all its numbers; `kind` as Prometheus names it."""

    name: str
    kind: str
    text: str
    samples: Sequence[Sample]


class Asked(Struct, frozen=True):
    """How are you? The answer has the same number."""

    number: int
    metrics: bool


class Told(Struct, frozen=True, kw_only=True):
    """How a process is. What is wrong is in words, and empty where nothing is.

    `number` is 0 for what was not asked for: the last word of a process, with its metrics.
    """

    number: int
    not_live: str = ""
    not_ready: str = ""
    slots: int = 0
    used: int = 0
    families: Sequence[Family] | None = None


_encode = msgspec.msgpack.encode
_asked = msgspec.msgpack.Decoder(Asked)
_told = msgspec.msgpack.Decoder(Told)


def sent(value: Asked | Told) -> bytes:
    data = _encode(value)
    return _HEAD.pack(len(data)) + data


def length_of(head: bytes) -> int:
    (length,) = _HEAD.unpack(head)
    return int(length)


def read_asked(data: bytes) -> Asked:
    return _asked.decode(data)


def read_told(data: bytes) -> Told:
    """Raises `msgspec.MsgspecError` for what is none."""
    return _told.decode(data)
