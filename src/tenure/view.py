"""The stored bytes of a job as the values that users see. Pure."""

from typing import Any

from msgspec.structs import replace

from tenure.codec import decode
from tenure.errors import SerializationError
from tenure.types import Damaged, Job

__all__ = ["decoded", "value_of"]


def decoded(job: Job[bytes]) -> Job[Any]:
    """The view for users: payload, result and progress as values, or `Damaged`."""
    return replace(
        job,
        payload=value_of(job.payload),
        result=None if job.result is None else value_of(job.result),
        progress=None if job.progress is None else value_of(job.progress),
    )


def value_of(data: bytes) -> Any:
    """The value in stored bytes, or `Damaged`."""
    try:
        return decode(data)
    except SerializationError:
        return Damaged(data)
