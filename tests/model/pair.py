"""Two stores that are asked the same: the reference, and the one under test.

Compares what the contract promises of an answer, and nothing more. What it leaves free: how long a
page of `list` is; which queues without jobs `counts` names; the order of reclaimed holds whose
leases ended at the same instant; which jobs a purge or prune with a limit takes first; whether a
repeated claim that finds what it held takes new jobs too; and where jobs have keys, how early
`next_due` may be.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from tenure.driver import Driver
from tenure.types import Counts, Job, JobFilter
from tests.model.subjects import Subject

__all__ = ["Call", "Pair", "plain"]

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One call of a driver, without its instant, so that it can be made again."""

    operation: str
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])

    async def make(self, driver: Driver, now: datetime | None) -> Any:
        method: Callable[..., Awaitable[Any]] = getattr(driver, self.operation)
        keywords = self.keywords if now is None else {**self.keywords, "now": now}
        return await method(*self.arguments, **keywords)


class Pair:
    """The reference and the subject, on an event loop that lasts as long as they do."""

    def __init__(self, subject: Subject, reference: Driver) -> None:
        self.subject = subject
        self.reference = reference
        self._runner = asyncio.Runner()
        self.tested = subject.connect()
        self._run(self.tested.open())
        self._run(reference.open())

    def _run(self, main: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(main)

    def close(self) -> None:
        try:
            self._run(self.tested.close())
            self._run(self.reference.close())
        finally:
            self._runner.close()

    def reopen(self) -> None:
        """Close the subject, and open the same store through another driver."""
        self._run(self.tested.close())
        self.tested = self.subject.connect()
        self._run(self.tested.open())

    def ask(self, call: Call, now: datetime | None) -> Any:
        """Make the call on both; the answer, which must be the same."""
        right = self.of_reference(call, now)
        got = self.of_tested(call, now)
        self.same(got, right, f"the answers of {call.operation}")
        return got

    def of_reference(self, call: Call, now: datetime | None) -> Any:
        return self._run(call.make(self.reference, now))

    def of_tested(self, call: Call, now: datetime | None) -> Any:
        return self._run(call.make(self.tested, now))

    def same(self, got: Any, right: Any, what: str) -> None:
        """Both answers say the same, as far as the contract says it."""
        one, other = plain(got), plain(right)
        assert one == other, f"{what} differ from the reference: {one}, and not {other}"

    # --- views ----------------------------------------------------------------------------------

    def view(self, limit: int = 100, which: JobFilter | None = None) -> dict[str, Job[bytes]]:
        """The jobs that match, in the order of arrival, which both must list alike."""
        right = self._run(_walk(self.reference, which or JobFilter(), limit))
        got = self._run(_walk(self.tested, which or JobFilter(), limit))
        self.same(got, right, "the jobs of list")
        return {job.id: job for job in reversed(got)}

    def view_of_reference(self) -> dict[str, Job[bytes]]:
        """Only its own, in the midst of a call."""
        jobs = self._run(_walk(self.reference, JobFilter(), 100))
        return {job.id: job for job in reversed(jobs)}

    def view_of_tested(self) -> dict[str, Job[bytes]]:
        """Only its own, in the midst of a call."""
        jobs = self._run(_walk(self.tested, JobFilter(), 100))
        return {job.id: job for job in reversed(jobs)}

    def counts(self, now: datetime) -> Counts:
        """What both count."""
        answer: Counts = self.ask(Call("counts"), now)
        return with_jobs(answer)


async def _walk(driver: Driver, which: JobFilter, limit: int) -> list[Job[bytes]]:
    found: list[Job[bytes]] = []
    cursor: str | None = None
    while True:
        page = await driver.list(which, cursor, limit)
        assert len(page.jobs) <= limit
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found


def with_jobs(counts: Counts) -> Counts:
    """The counts with only those queues that have jobs."""
    some = {queue: inner for queue, inner in counts.by_queue.items() if inner != Counts()}
    return replace(counts, by_queue=dict(sorted(some.items())))


def plain(answer: Any) -> Any:
    """An answer in a form in which equal means that the contract was kept alike."""
    if isinstance(answer, Counts):
        return with_jobs(answer)
    if isinstance(answer, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", answer)]
    return answer
