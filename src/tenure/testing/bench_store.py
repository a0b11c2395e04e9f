"""The store of a bench: the memory driver, which also notes what passes through it.

It can hold back all jobs but some. Otherwise it never does what the memory driver would not.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from tenure.clock import Clock
from tenure.driver import RecordItem
from tenure.drivers.memory import MemoryDriver
from tenure.drivers.memory.records import Record
from tenure.outcomes import Outcome
from tenure.standing import Fired, Tick
from tenure.states import TERMINAL, State
from tenure.types import (
    Claim,
    ClaimRequest,
    Enqueued,
    Held,
    Hold,
    Job,
    NewJob,
    QueueLimit,
    Recorded,
)

__all__ = ["BenchStore"]


class BenchStore(MemoryDriver):
    """`dispatched` are the jobs that were stored, in order; `outcomes` what was recorded, by job;
    `ended` the jobs that an outcome has ended.

    With `every_queue`, a claim is for all queues, whatever it asks for. With `only`, no other jobs
    are claimed.
    """

    def __init__(self, *, clock: Clock, every_queue: bool) -> None:
        super().__init__(clock=clock)
        self._every_queue = every_queue
        self.dispatched: list[NewJob] = []
        self.outcomes: list[tuple[str, Outcome]] = []
        self.ended: list[Job[bytes]] = []
        self.only: set[str] | None = None
        self._taken: set[Hold] = set()

    def outcome_of(self, job_id: str) -> Outcome | None:
        """The latest outcome of a job."""
        return next((o for job, o in reversed(self.outcomes) if job == job_id), None)

    @property
    def processing(self) -> list[str]:
        """The names of the jobs that are being processed by who has claimed since `forget`."""
        with self._lock:
            records = list(self._records.values())
        return [record.job.name for record in records if record.hold in self._taken]

    def forget(self) -> None:
        """A new worker is about to run: what others hold is their own affair."""
        self._taken.clear()

    @property
    def queues(self) -> list[str]:
        """The queues with jobs that wait, by name."""
        with self._lock:
            jobs = [record.job for record in self._records.values()]
        return sorted({job.queue for job in jobs if job.state is State.PENDING})

    def claimable(self) -> bool:
        """Whether a claim for all queues would have an answer now."""
        now = self._clock.now()
        with self._lock:
            return any(
                not self._limits.full(record.job.limits, now)
                for queue in self.queues
                for record in self._due(queue, now, None)
            )

    def tell(self) -> None:
        """Wake a worker that waits for jobs."""
        self._hints.tell()

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        with self._lock:
            before = set(self._records)
            answers = await super().enqueue(jobs, now=now)
            self.dispatched += [job for job in jobs if self._is_new(job.id, before)]
        return answers

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        with self._lock:
            before = set(self._records)
            answers = await super().fire(ticks, now=now)
            jobs = [tick.job for tick in ticks if tick.job is not None]
            self.dispatched += [job for job in jobs if self._is_new(job.id, before)]
        return answers

    def _is_new(self, job_id: str, before: set[str]) -> bool:
        return job_id in self._records and job_id not in before

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        answers = await super().record(items, now=now)
        for (hold, outcome), answer in zip(items, answers, strict=True):
            if answer is Recorded.APPLIED:
                self.outcomes.append((hold.job_id, outcome))
                job = self._records[hold.job_id].job
                if job.state in TERMINAL:
                    self.ended.append(job)
        return answers

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        if self._every_queue:
            every = tuple(QueueLimit(queue, request.limit) for queue in self.queues)
            request = replace(request, queues=every)
        claims = await super().claim(request, now=now)
        self._taken |= {claim.hold for claim in claims}
        return claims

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> list[Record]:
        due = super()._due(queue, now, names)
        return due if self.only is None else [r for r in due if r.job.id in self.only]
