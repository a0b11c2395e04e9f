"""A worker under watch: which of its attempts failed, and what it said of that.

What it keeps is bounded by what is wrong, so that it may watch any number of jobs.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import tenure

__all__ = ["CANARY", "Watched"]

CANARY = "canary"

_OF_ATTEMPTS = (
    tenure.JobFailed,
    tenure.JobTimedOut,
    tenure.JobPanicked,
    tenure.SerializationError,
)


class Watched:
    """One worker and one run of it."""

    def __init__(self, queue: tenure.Queue, options: Mapping[str, Any]) -> None:
        observers = [self._observe, *options.get("observers", ())]
        settings: dict[str, Any] = {**options, "observers": observers}
        self.worker = tenure.Worker(queue, **settings)
        self.worker.register(CANARY, _canary)
        self.register = self.worker.register
        self.serves: str = next(iter(options.get("queues", ["default"])))
        self.reported: Counter[str] = Counter()  # by the type of the error
        self.dropped = 0
        self.untold: Counter[str] = Counter()  # failed attempts without an error, by job
        self._handle: tenure.WorkerHandle | None = None

    @property
    def handle(self) -> tenure.WorkerHandle:
        assert self._handle is not None, "it was not started"
        return self._handle

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[tenure.WorkerHandle]:
        """A run that the body ends itself; a failing body aborts it."""
        self._handle = self.worker.run()
        try:
            yield self._handle
            assert not self._handle.running, "the standing checks were left out"
        finally:
            self._handle.abort()
            await self._handle.wait()

    def _observe(self, event: tenure.Event) -> None:
        match event:
            case tenure.JobSettled(job=job, outcome=tenure.Retried() | tenure.Failed()):
                self._count(job.id, 1)
            case tenure.JobFenced(job=job) | tenure.LeaseEnded(job=job):
                self._count(job.id, 1)
            case tenure.ErrorReported(error=error, dropped=dropped):
                self.reported[type(error).__name__] += 1
                self.dropped += dropped
                told = (*_OF_ATTEMPTS, tenure.StateTransitionError, tenure.LeaseLost)
                if isinstance(error, told) and error.job_id is not None:
                    self._count(error.job_id, -1)
            case _:
                pass

    def _count(self, job_id: str, change: int) -> None:
        self.untold[job_id] += change
        if not self.untold[job_id]:
            del self.untold[job_id]


async def _canary(payload: object) -> None:
    return None
