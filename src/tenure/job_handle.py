"""What a dispatch returns: the id of the job, and the way to wait for its end."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from tenure.clock import Clock
from tenure.errors import JobCancelled, JobFailed, SerializationError
from tenure.intake import seconds
from tenure.outcomes import Failure
from tenure.states import State
from tenure.types import Damaged, Job

__all__ = ["JobHandle"]

_FIRST_POLL, _LONGEST_POLL = 0.005, 0.25


class JobHandle:
    """A dispatched job. `id` is opaque; `created` is False where an existing job was returned."""

    __slots__ = ("_clock", "_get", "created", "id")

    def __init__(
        self,
        job_id: str,
        *,
        created: bool,
        get: Callable[[str], Awaitable[Job[Any]]],
        clock: Clock,
    ) -> None:
        self._get = get
        self._clock = clock
        self.id = job_id
        self.created = created

    async def result(self, timeout: float | timedelta | None = None) -> Any:
        """Wait until the job has ended and return what its handler returned.

        Raises `JobFailed`, `JobCancelled`, `JobNotFound` (deleted or pruned meanwhile), and
        `TimeoutError` after `timeout` seconds; None waits as long as it takes.
        """
        clock = self._clock
        end = None if timeout is None else clock.monotonic() + seconds("timeout", timeout)
        pause = _FIRST_POLL
        while True:
            job = await self._get(self.id)
            match job.state:
                case State.COMPLETED:
                    if isinstance(job.result, Damaged):
                        raise SerializationError(
                            f"the stored result of job {self.id} does not decode", job_id=self.id
                        )
                    return job.result
                case State.FAILED:
                    failure = job.error or _unreadable(job)
                    raise JobFailed(job.id, job.name, failure.attempt, failure)
                case State.CANCELLED:
                    raise JobCancelled(job.id)
                case State.PENDING | State.BLOCKED | State.PROCESSING:
                    pass
            if end is not None:
                left = end - clock.monotonic()
                if left <= 0:
                    raise TimeoutError(f"job {self.id} is still {job.state}")
                pause = min(pause, left)
            await clock.sleep(pause)
            pause = min(_LONGEST_POLL, pause * 1.5)

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}>"


def _unreadable(job: Job[Any]) -> Failure:
    return Failure(
        kind="damaged",
        message="the stored error of the job does not decode",
        at=job.finished_at or job.updated_at,
        attempt=job.attempt,
    )
