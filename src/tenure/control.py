"""Control: the part of a queue that cancels, retries, deletes and moves jobs, and pauses queues.

What becomes of a job is decided by the store; here a write whose answer was lost is repeated, and
the answer is what the first one would have said.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import overload

from msgspec import Struct

from tenure.answering import answered, look, retried_at_first
from tenure.driver import Capability, Driver
from tenure.errors import InvalidConfiguration, Unsupported
from tenure.intake import check_at, check_name, check_priority
from tenure.opened import Opened
from tenure.states import State
from tenure.types import Answer, ManualRetry, Move

__all__ = ["Control"]


class Control(Opened):
    """What `Queue` does to jobs that are stored."""

    @overload  # a str is an Iterable[str] too, and the first signature wins
    async def cancel(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    async def cancel(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    async def cancel(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """Cancel one job or many; one answer for each, never an error for it.

        | answer | the job |
        |---|---|
        | `done` | was waiting and is cancelled |
        | `requested` | is running: its handler is cancelled; what it finishes first stands |
        | `finished` | had ended already |
        | `unknown` | does not exist; nothing is left behind |
        """
        driver = await self.driver()

        async def ask(ids: Sequence[str]) -> Sequence[Answer]:
            answers, _ = await self._store.repeat(lambda: driver.cancel(ids))
            return answers

        return await answered(job_ids, ask)

    @overload  # a str is an Iterable[str] too, and the first signature wins
    async def retry(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    async def retry(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    async def retry(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """Make failed and cancelled jobs due now, with fresh attempts; one answer for each.

        | answer | the job |
        |---|---|
        | `done` | had failed or been cancelled and is pending again |
        | `finished` | has completed |
        | `running` | is being processed |
        | `live` | is waiting already |
        | `held` | has a unique key that another job holds by now |
        | `unknown` | does not exist |
        """
        driver = await self.driver()

        async def ask(jobs: Sequence[_Seen]) -> Sequence[Answer]:
            items = [ManualRetry(job.id, job.serial) for job in jobs]
            answers, repeated = await self._store.repeat(lambda: driver.retry(items))
            if not repeated:
                return answers
            return retried_at_first([job.state for job in jobs], answers)

        return await answered(job_ids, lambda ids: _for_those_seen(driver, ids, ask))

    @overload  # a str is an Iterable[str] too, and the first signature wins
    async def delete(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    async def delete(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    async def delete(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """Delete jobs that are not being processed; one answer for each.

        | answer | the job |
        |---|---|
        | `done` | is gone |
        | `running` | is being processed, and stays: cancel it first |
        | `unknown` | does not exist |
        """
        driver = await self.driver()

        async def ask(ids: Sequence[str]) -> Sequence[Answer]:
            answers, repeated = await self._store.repeat(lambda: driver.delete(ids))
            return [Answer.DONE if repeated and a is Answer.UNKNOWN else a for a in answers]

        return await answered(job_ids, ask)

    @overload  # a str is an Iterable[str] too, and the first signature wins
    async def move(  # type: ignore[overload-overlap]
        self,
        job_ids: str,
        *,
        queue: str | None = None,
        at: datetime | None = None,
        priority: int | None = None,
    ) -> Answer: ...
    @overload
    async def move(
        self,
        job_ids: Iterable[str],
        *,
        queue: str | None = None,
        at: datetime | None = None,
        priority: int | None = None,
    ) -> Sequence[Answer]: ...
    async def move(
        self,
        job_ids: str | Iterable[str],
        *,
        queue: str | None = None,
        at: datetime | None = None,
        priority: int | None = None,
    ) -> Answer | Sequence[Answer]:
        """Give waiting jobs another queue, due time or priority; one answer for each.

        What is not given stays; nothing given is `InvalidConfiguration`. `at` is an aware instant;
        one that has passed makes the job due at once. Wrong values raise `InvalidJob` as in
        `dispatch`, before any job is moved.

        | answer | the job |
        |---|---|
        | `done` | was waiting and is moved |
        | `running` | is being processed |
        | `finished` | has ended |
        | `live` | was taken by a worker in this very moment; ask again |
        | `unknown` | does not exist |
        """
        if queue is None and at is None and priority is None:
            raise InvalidConfiguration("queue, at or priority", None, "must be given")
        queue = None if queue is None else check_name("queue", queue)
        at = None if at is None else check_at("at", at, self.clock.now())
        priority = None if priority is None else check_priority("priority", priority)
        driver = await self.driver()
        if at is not None and Capability.DELAY not in driver.capabilities:
            raise Unsupported("at")

        async def ask(jobs: Sequence[_Seen]) -> Sequence[Answer]:
            items = [
                Move(job_id=job.id, queue=queue, at=at, priority=priority, serial=job.serial)
                for job in jobs
            ]
            answers, _ = await self._store.repeat(lambda: driver.move(items))
            return answers

        return await answered(job_ids, lambda ids: _for_those_seen(driver, ids, ask))

    async def pause(self, queue: str) -> None:
        """Let no worker claim from this queue any more; running jobs go on."""
        await self._pause(queue, True)

    async def resume(self, queue: str) -> None:
        """Let workers claim from this queue again."""
        await self._pause(queue, False)

    async def _pause(self, queue: str, paused: bool) -> None:
        driver = await self.driver()
        name = check_name("queue", queue)
        await self._store.repeat(lambda: driver.pause(name, paused))


class _Seen(Struct, frozen=True):
    """A job as it was before the verb: its serial makes a repeat harmless after it has run."""

    id: str
    serial: int
    state: State


async def _for_those_seen(
    driver: Driver,
    job_ids: Sequence[str],
    ask: Callable[[Sequence[_Seen]], Awaitable[Sequence[Answer]]],
) -> Sequence[Answer]:
    """Ask about the jobs that exist; the others are unknown."""
    seen = await look(driver, job_ids, lambda job: _Seen(job.id, job.serial, job.state))
    jobs = [job for job in seen if job is not None]
    answers = iter(await ask(jobs) if jobs else ())
    return [Answer.UNKNOWN if job is None else next(answers) for job in seen]
