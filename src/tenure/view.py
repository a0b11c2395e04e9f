"""The stored bytes of a job as the values that users see. Pure."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tenure.codec import decode
from tenure.errors import SerializationError
from tenure.progress import progress_from
from tenure.types import Damaged, Job

__all__ = ["decoded", "value_of"]


def decoded(job: Job[bytes]) -> Job[Any]:
    """The view for users: payload and result as values, `progress` a `Progress`, or `Damaged`."""
    return replace(
        job,
        payload=value_of(job.payload),
        result=None if job.result is None else value_of(job.result),
        progress=None if job.progress is None else _value(job.progress, progress_from),
    )


def value_of(data: bytes) -> Any:
    """The value in stored bytes, or `Damaged`."""
    return _value(data, decode)


def _value(data: bytes, read: Callable[[bytes], Any]) -> Any:
    try:
        return read(data)
    except SerializationError:
        return Damaged(data)
