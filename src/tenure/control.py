"""Control: the part of a queue that cancels, retries and deletes jobs, and pauses queues.

What becomes of a job is decided by the store; here a write whose answer was lost is repeated, and
the answer is what the first one would have said.
"""

from collections.abc import Iterable, Sequence
from typing import overload

from tenure.answering import answered
from tenure.intake import check_name
from tenure.opened import Opened
from tenure.states import State
from tenure.types import Answer, ManualRetry

__all__ = ["Control"]

_ENDED_BADLY = frozenset({State.FAILED, State.CANCELLED})


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
        | `unknown` | does not exist |
        """
        driver = await self.driver()

        async def ask(ids: Sequence[str]) -> Sequence[Answer]:
            # The serial makes a repeat harmless after the job has been run and failed once more.
            jobs = [await driver.get(job_id) for job_id in ids]
            items = [
                ManualRetry(job_id, job.serial if job else None)
                for job_id, job in zip(ids, jobs, strict=True)
            ]
            answers, repeated = await self._store.repeat(lambda: driver.retry(items))
            if not repeated:
                return answers
            done = (Answer.LIVE, Answer.RUNNING)
            ended = [job is not None and job.state in _ENDED_BADLY for job in jobs]
            return [
                Answer.DONE if was and answer in done else answer
                for was, answer in zip(ended, answers, strict=True)
            ]

        return await answered(job_ids, ask)

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
