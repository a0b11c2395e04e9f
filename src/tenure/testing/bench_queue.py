"""The queue of a bench: it says what was dispatched, before the dispatch returns.

It changes nothing of what is dispatched.
"""

from collections.abc import Awaitable, Callable, Sequence

from tenure.clock import Clock
from tenure.driver import Driver
from tenure.job_handle import JobHandle
from tenure.queue import Queue
from tenure.types import NewJob

__all__ = ["BenchQueue"]


class BenchQueue(Queue):
    """Awaits `dispatched` with the ids of jobs that were created."""

    def __init__(
        self, driver: Driver, clock: Clock, dispatched: Callable[[Sequence[str]], Awaitable[None]]
    ) -> None:
        super().__init__(driver, clock=clock)
        self._dispatched = dispatched

    async def _enqueue(self, jobs: Sequence[NewJob], within: object | None) -> list[JobHandle]:
        handles = await super()._enqueue(jobs, within)
        await self._dispatched([handle.id for handle in handles if handle.created])
        return handles
