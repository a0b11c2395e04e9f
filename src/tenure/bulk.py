"""Bulk: the part of a queue that retries, cancels and deletes all jobs that match.

In bounded steps, each a write of its own, so that no number of jobs makes workers wait or fills the
memory. What a step did stands whatever becomes of the next; every call may simply be made again.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from tenure.answering import retried_at_first
from tenure.driver import Driver
from tenure.intake import check_name
from tenure.opened import Opened
from tenure.selecting import check_state, selected
from tenure.states import TERMINAL, State
from tenure.types import Answer, Counts, Job, JobFilter, ManualRetry

__all__ = ["Answers", "Bulk"]

_AT_ONCE = 500
_AT_FIRST = 50  # a page holds whole jobs, and how large these are is not known before
_BYTES = 8 * 1024 * 1024

_LIVE = frozenset(State) - TERMINAL
_RETRIED = frozenset({State.FAILED, State.CANCELLED})
_DELETED = frozenset(State) - {State.PROCESSING}


class Answers(Struct, frozen=True, kw_only=True):
    """How many jobs got which answer; the words are those of `Answer`."""

    done: int = 0
    requested: int = 0
    finished: int = 0
    running: int = 0
    live: int = 0
    held: int = 0
    unknown: int = 0


class Bulk(Opened):
    """What `Queue` does to all jobs that match."""

    async def cancel_all(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Answers:
        """Cancel the jobs that match and have not ended, as `cancel` does; count the answers.

        `state` is "pending", "blocked" or "processing"; None is all three. A job that matched when
        it was looked at and has moved on is still cancelled, or asked to stop. Jobs that arrive
        meanwhile are left alone. After each step `progress` is called with the number so far.
        """
        which = selected(None if state is None else check_state(state, _LIVE), queue, name)

        async def ask(jobs: Sequence[Job[bytes]]) -> Sequence[Answer]:
            driver, ids = await self.driver(), [job.id for job in jobs]
            answers, _ = await self._store.repeat(lambda: driver.cancel(ids))
            return answers

        return await self._in_steps(which, _LIVE, ask, progress)

    async def retry_all(
        self,
        *,
        state: State | str = State.FAILED,
        queue: str | None = None,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Answers:
        """Make the failed jobs that match due now, as `retry` does; count the answers.

        `state` may also be "cancelled". Each job is retried once, also one that fails again
        meanwhile. After each step `progress` is called with the number so far.
        """
        which = selected(check_state(state, _RETRIED), queue, name)

        async def ask(jobs: Sequence[Job[bytes]]) -> Sequence[Answer]:
            driver, items = await self.driver(), [ManualRetry(job.id, job.serial) for job in jobs]
            answers, repeated = await self._store.repeat(lambda: driver.retry(items))
            return retried_at_first([job.state for job in jobs], answers) if repeated else answers

        return await self._in_steps(which, _RETRIED, ask, progress)

    async def delete_all(
        self,
        *,
        state: State | str,
        queue: str | None = None,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Answers:
        """Delete the jobs of one state that match, as `delete` does; count the answers.

        `state` is any but "processing". A job that has moved on since it was looked at is deleted
        too, unless it is being processed. Jobs that arrive meanwhile are left alone. After each
        step `progress` is called with the number so far. For a whole queue, `purge` is faster.
        """
        which = selected(check_state(state, _DELETED), queue, name)

        async def ask(jobs: Sequence[Job[bytes]]) -> Sequence[Answer]:
            driver, ids = await self.driver(), [job.id for job in jobs]
            answers, repeated = await self._store.repeat(lambda: driver.delete(ids))
            return [Answer.DONE if repeated and a is Answer.UNKNOWN else a for a in answers]

        return await self._in_steps(which, _DELETED, ask, progress)

    async def purge(
        self,
        queue: str,
        *,
        state: State | str,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Delete the jobs of a queue that are in this state; return how many.

        `state` is any but "processing"; a job that has left it by then stays. It goes by how many
        there were when it began, so that it ends while new ones arrive. After each step `progress`
        is called with the number so far. A step whose answer was lost is not counted.
        """
        which = JobFilter(state=check_state(state, _DELETED), queue=check_name("queue", queue))
        driver = await self.driver()
        deleted = 0
        while True:
            counts = (await driver.counts()).by_queue.get(queue, Counts())
            left = _in_state(counts, which.state)
            while left > 0:
                step = await self._purge(driver, which, min(left, _AT_ONCE))
                if step == 0:
                    return deleted
                left -= step
                deleted += step
                if progress is not None:
                    progress(deleted)
            if not counts.capped or which.state is not State.PENDING:
                return deleted

    async def _purge(self, driver: Driver, which: JobFilter, limit: int) -> int:
        deleted, _ = await self._store.repeat(lambda: driver.purge(which, limit))
        return deleted

    async def _in_steps(
        self,
        which: JobFilter,
        states: frozenset[State],
        ask: Callable[[Sequence[Job[bytes]]], Awaitable[Sequence[Answer]]],
        progress: Callable[[int], None] | None,
    ) -> Answers:
        """Ask about the matching jobs page by page, from the newest to the oldest.

        What arrives meanwhile is newer, so that it is never seen, and nothing is seen twice.
        """
        driver = await self.driver()
        told: Counter[Answer] = Counter()
        cursor: str | None = None
        size = _AT_FIRST
        while True:
            page = await driver.list(which, cursor, size)
            if jobs := [job for job in page.jobs if job.state in states]:
                told.update(await ask(jobs))
                if progress is not None:
                    progress(told.total())
            cursor = page.cursor
            if cursor is None:
                return Answers(**{answer.value: number for answer, number in told.items()})
            size = _next_size(page.jobs) or size


def _in_state(counts: Counts, state: State | None) -> int:
    match state:
        case State.PENDING:
            return counts.pending + counts.scheduled
        case State.BLOCKED:
            return counts.blocked
        case State.COMPLETED:
            return counts.completed
        case State.FAILED:
            return counts.failed
        case State.CANCELLED:
            return counts.cancelled
        case State.PROCESSING | None:
            return 0


def _next_size(jobs: Sequence[Job[bytes]]) -> int:
    """How many jobs like these are some megabytes; 0 where there are none to judge by."""
    if not jobs:
        return 0
    size = sum(
        len(part) for job in jobs for part in (job.payload, job.result, job.progress) if part
    )
    return max(1, min(_AT_ONCE, _BYTES * len(jobs) // max(1, size)))
