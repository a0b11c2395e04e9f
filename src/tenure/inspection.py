"""Inspection: the part of a queue that looks at jobs. It changes none."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tenure.answering import may_exist
from tenure.errors import InvalidConfiguration, JobNotFound
from tenure.history import PastAttempt
from tenure.intake import check_name
from tenure.opened import Opened
from tenure.presence import WorkerInfo
from tenure.selecting import selected
from tenure.states import State
from tenure.types import Counts, Job, Page
from tenure.view import decoded

__all__ = ["Inspection"]


class Inspection(Opened):
    """What `Queue` shows of the jobs of a store."""

    async def get(self, job_id: str) -> Job[Any]:
        """The job as it is stored now. Raises `JobNotFound`."""
        driver = await self.driver()
        job = await driver.get(job_id) if may_exist(job_id) else None
        if job is None:
            raise JobNotFound(job_id)
        return decoded(job, self.codec)

    async def list(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Any]:
        """Up to `limit` jobs that match, newest first; pass the page's `cursor` for the next.

        The store is searched in bounded steps, so that a rare match costs no one else anything.
        """
        if type(limit) is not int or not 1 <= limit <= 1000:
            raise InvalidConfiguration("limit", limit, "must be from 1 to 1,000")
        which = selected(state, queue, name)
        driver = await self.driver()
        jobs: tuple[Job[Any], ...] = ()
        while True:
            page = await driver.list(which, cursor, limit - len(jobs))
            jobs += tuple(decoded(job, self.codec) for job in page.jobs)
            cursor = page.cursor
            if cursor is None or len(jobs) >= limit:
                return Page(jobs=jobs, cursor=cursor)

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        """The attempts of a job that did not complete it, oldest first.

        Failed, timed out, cancelled and stalled ones, the newest 100; kept as long as the job, also
        through a manual retry. A completed attempt is not in it: the job itself tells of that.
        Raises `JobNotFound`, `Unsupported` on a store that keeps none.
        """
        driver = await self.driver()
        attempts = await driver.history(job_id) if may_exist(job_id) else ()
        if not attempts and (not may_exist(job_id) or await driver.get(job_id) is None):
            raise JobNotFound(job_id)
        return attempts

    async def counts(self) -> Counts:
        """How many jobs are in which state, in all and by queue; cheap whatever is stored."""
        return await (await self.driver()).counts()

    async def waiting(self, queues: Iterable[str]) -> Mapping[str, float]:
        """For how many seconds the longest waiting of the due jobs of each queue has waited.

        0 where none is due. Also in a paused queue, and where a limit holds the job: it waits all
        the same. Cheap whatever is stored. Raises `InvalidJob` for what is no name of a queue,
        `Unsupported` by store.
        """
        names = [check_name("queue", name) for name in queues]
        times = await (await self.driver()).oldest_due(names)
        now = self.clock.now()
        return {
            name: 0.0 if due is None else max(0.0, (now - due).total_seconds())
            for name, due in zip(names, times, strict=True)
        }

    async def workers(self) -> Sequence[WorkerInfo]:
        """The workers that are there, by id, as each said of itself when it was last `seen_at`.

        Each says so at its start, every 15 seconds while it runs jobs, and else every minute; one
        that was killed is shown for up to three times as long. For display only: one that the store
        has not heard from is missing, and works all the same. Raises `Unsupported` by store.
        """
        return await (await self.driver()).workers()
