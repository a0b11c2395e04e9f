"""Witnesses of how many bytes the completed jobs of a queue may keep."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tenure.drivers.memory.records import end
from tenure.states import State
from tenure.types import Answer, Job, Retention
from tests.drivers.witnesses import Witness


class RetentionIgnoresBytes(Witness):
    """`prune` knows ages and a number only."""

    def _beyond(self, retention: Retention, now: datetime) -> Iterable[Job[bytes]]:
        return super()._beyond(replace(retention, completed_bytes=None), now)


class _Pruned(Witness):
    """What goes by its bytes is found by `_heavy`; of the rest everything is right."""

    def _beyond(self, retention: Retention, now: datetime) -> Iterable[Job[bytes]]:
        right = list(super()._beyond(replace(retention, completed_bytes=None), now))
        if retention.completed_bytes is None:
            return right
        settled = {
            job.id for job in super()._beyond(Retention(completed=0.0, completed_bytes=None), now)
        }
        right_ids = {job.id for job in right}
        ended = sorted(
            (r for r in self._records.values() if r.job.state is State.COMPLETED),
            key=lambda r: (end(r.job), r.arrival),
        )
        heavy = self._heavy([record.job for record in ended], retention.completed_bytes)
        more = [job for job in heavy if job.id in settled and job.id not in right_ids]
        return [*right, *more]

    def _heavy(self, ended: Sequence[Job[bytes]], bound: int) -> list[Job[bytes]]:
        """Those of the completed jobs, oldest end first, that are beyond the bound."""
        found: list[Job[bytes]] = []
        size: dict[str, int] = {}
        for job in self.order(ended):
            line = self.line(job)
            size[line] = size.get(line, 0) + self.size(job)
            if size[line] > bound:
                found.append(job)
        return found

    def order(self, ended: Sequence[Job[bytes]]) -> Iterable[Job[bytes]]:
        return reversed(ended)

    def line(self, job: Job[bytes]) -> str:
        return job.queue

    def size(self, job: Job[bytes]) -> int:
        return len(job.payload) + len(job.result or b"")


class NewestGoByTheirBytes(_Pruned):
    """The bytes are given to the oldest jobs; the newest go."""

    def order(self, ended: Sequence[Job[bytes]]) -> Iterable[Job[bytes]]:
        return ended


class OneSumForAllQueues(_Pruned):
    """The bytes of another queue are counted too."""

    def line(self, job: Job[bytes]) -> str:
        return "all"


class ResultsWeighNothing(_Pruned):
    """Only payloads are counted."""

    def size(self, job: Job[bytes]) -> int:
        return len(job.payload)


class BoundNotReached(_Pruned):
    """The job that reaches the bound goes, although it does not pass it."""

    def _heavy(self, ended: Sequence[Job[bytes]], bound: int) -> list[Job[bytes]]:
        return super()._heavy(ended, bound - 1)


class TogetherByTheirIds(_Pruned):
    """Of jobs that ended at one instant the greater id is the newer."""

    def order(self, ended: Sequence[Job[bytes]]) -> Iterable[Job[bytes]]:
        return sorted(ended, key=lambda job: (end(job), job.id), reverse=True)


class NewestOfTheDoomedFirst(Witness):
    """A prune with a limit begins with the newest of what is to go."""

    def _beyond(self, retention: Retention, now: datetime) -> Iterable[Job[bytes]]:
        return list(super()._beyond(retention, now))[::-1]


class FreshGoByTheirBytes(Witness):
    """What is beyond its bytes goes at once."""

    def _beyond(self, retention: Retention, now: datetime) -> Iterable[Job[bytes]]:
        if retention.completed_bytes is None:
            return super()._beyond(retention, now)
        return super()._beyond(retention, now.replace(year=now.year + 1))


class DeletedJobsWeighOn(_Pruned):
    """What was deleted by hand stays in the sum."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._weight: dict[str, int] = {}

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        jobs = [self._records[job_id].job for job_id in set(job_ids) if job_id in self._records]
        answers = await super().delete(job_ids, now=now)
        for job in jobs:
            if job.state is State.COMPLETED and job.id not in self._records:
                self._weight[job.queue] = self._weight.get(job.queue, 0) + self.size(job)
        return answers

    def _heavy(self, ended: Sequence[Job[bytes]], bound: int) -> list[Job[bytes]]:
        queues = {job.queue for job in ended}
        found: list[Job[bytes]] = []
        for queue in queues:
            own = [job for job in ended if job.queue == queue]
            found += super()._heavy(own, bound - self._weight.get(queue, 0))
        return found
