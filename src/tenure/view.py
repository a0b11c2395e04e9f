"""The stored bytes of a job as the values that users see. Pure."""

from typing import Any

from msgspec.structs import replace

from tenure.codec import decode
from tenure.errors import SerializationError
from tenure.payload_codec import PayloadCodec
from tenure.types import Damaged, Job

__all__ = ["decoded"]


def decoded(job: Job[bytes], codec: PayloadCodec | None = None) -> Job[Any]:
    """The view for users: payload, result and progress as values, or `Damaged`."""
    return replace(
        job,
        payload=_value(job.payload, codec),
        result=None if job.result is None else _value(job.result, codec),
        progress=None if job.progress is None else _value(job.progress, codec),
    )


def _value(data: bytes, codec: PayloadCodec | None) -> Any:
    try:
        return decode(data, codec)
    except SerializationError:
        return Damaged(data)
