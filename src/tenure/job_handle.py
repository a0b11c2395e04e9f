"""What a dispatch returns: the id of the job, and the way to wait for its end."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, cast

from tenure.errors import JobCancelled, JobFailed, JobNotFound, SerializationError
from tenure.intake import seconds
from tenure.outcomes import Failure
from tenure.payload_codec import PayloadCodec
from tenure.states import State
from tenure.types import Damaged, Job
from tenure.view import decoded

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default, which checkers know before Python 3.13

    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")

T = TypeVar("T")

__all__ = ["JobHandle"]


class JobHandle(Generic[R]):
    """A dispatched job. `id` is opaque; `created` is False where an existing job was returned.

    `R` is what its handler returns, where that is known: of a task.
    """

    __slots__ = ("_codec", "_end", "_read", "created", "id")

    def __init__(
        self,
        job_id: str,
        *,
        created: bool,
        end: Callable[[str, float | None], Awaitable[Job[bytes] | None]],
        codec: PayloadCodec | None,
        read: Callable[[Any], R] | None = None,
    ) -> None:
        self._end = end
        self._codec = codec
        self._read = read
        self.id: str = job_id
        self.created: bool = created

    async def result(self, timeout: float | timedelta | None = None) -> R:
        """Wait until the job has ended and return what its handler returned.

        The end is known at once where a worker of the same `Queue` object records it. What ends
        elsewhere is looked for, less often the longer it takes, once a second at last.

        Raises `JobFailed`, `JobCancelled`, `JobNotFound` (deleted or pruned meanwhile),
        `TimeoutError` after `timeout` seconds (None waits as long as it takes), a `StoreError`
        when the store cannot be asked, and `RuntimeUnavailable` when the queue is closed.
        """
        seen = await self._end(self.id, None if timeout is None else seconds("timeout", timeout))
        if seen is None:
            raise JobNotFound(self.id)
        job = decoded(seen, self._codec)
        match job.state:
            case State.COMPLETED:
                if isinstance(job.result, Damaged):
                    raise SerializationError(
                        f"the stored result of job {self.id} does not decode", job_id=self.id
                    )
                return cast("R", job.result) if self._read is None else self._read(job.result)
            case State.FAILED:
                failure = job.error or _unreadable(job)
                raise JobFailed(job.id, job.name, failure.attempt, failure)
            case State.CANCELLED:
                raise JobCancelled(job.id)
            case State.PENDING | State.BLOCKED | State.PROCESSING:
                raise TimeoutError(f"job {self.id} is still {job.state}")

    def reading(self, read: Callable[[Any], T]) -> "JobHandle[T]":
        """The same job, whose result is what `read` makes of the stored one."""
        return JobHandle(self.id, created=self.created, end=self._end, codec=self._codec, read=read)

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}>"


def _unreadable(job: Job[Any]) -> Failure:
    return Failure(
        kind="damaged",
        message="the stored error of the job does not decode",
        at=job.finished_at or job.updated_at,
        attempt=job.attempt,
    )
