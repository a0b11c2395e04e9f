"""The stored bytes of a job as the values that users see. Pure."""

from typing import Any

from msgspec.structs import replace

from tenure.codec import decode
from tenure.errors import SerializationError
from tenure.types import Damaged, Job

__all__ = ["decoded"]


def decoded(job: Job[bytes]) -> Job[Any]:
    """The view for users: payload, result and progress as values, or `Damaged`."""
    return replace(
        job,
        payload=_value(job.payload),
        result=None if job.result is None else _value(job.result),
        progress=None if job.progress is None else _value(job.progress),
    )


def _value(data: bytes) -> Any:
    try:
        return decode(data)
    except SerializationError:
        return Damaged(data)
