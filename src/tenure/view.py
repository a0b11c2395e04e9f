"""The stored bytes of a job as the values that users see. Pure."""

from typing import Any

from msgspec.structs import replace

from tenure.codec import decode, opened
from tenure.errors import SerializationError
from tenure.payload_codec import PayloadCodec
from tenure.progress import Progress, progress_from
from tenure.types import Damaged, Job

__all__ = ["decoded", "value_of"]


def decoded(job: Job[bytes], codec: PayloadCodec | None = None) -> Job[Any]:
    """The view for users: payload and result as values, `progress` a `Progress`, or `Damaged`."""
    return replace(
        job,
        payload=value_of(job.payload, codec),
        result=None if job.result is None else value_of(job.result, codec),
        progress=None if job.progress is None else _progress_of(job.progress, codec),
    )


def value_of(data: bytes, codec: PayloadCodec | None = None) -> Any:
    """The value in stored bytes, or `Damaged`."""
    try:
        return decode(data, codec)
    except SerializationError:
        return Damaged(data)


def _progress_of(data: bytes, codec: PayloadCodec | None) -> Progress | Damaged:
    try:
        return progress_from(opened(data, codec))
    except SerializationError:
        return Damaged(data)
