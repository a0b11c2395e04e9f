"""What `tenure top` sees of a store: one look, with what changed since the look before.

A look asks a handful of cheap questions, however many jobs there are, and changes nothing. What
has not changed is not asked again.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from tenure.driver import Capability, Driver
from tenure.presence import WorkerInfo
from tenure.queue import Queue
from tenure.states import State
from tenure.types import Counts, JobFilter

__all__ = ["FailedJob", "Look", "Looks", "QueueLook"]

_SHOWN = 10  # failed jobs
_PAGES = 3  # that are searched for them at most
_AGED = 20  # queues whose oldest job is asked for
_PRUNING = 60.0  # seconds for which it is told that finished jobs were deleted
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = timedelta(seconds=1)


class QueueLook(Struct, frozen=True, kw_only=True):
    """One queue, or all of them.

    `waiting` are due now and `delayed` later; `oldest` is for how many seconds the first of its
    waiting jobs has been due, None where that is not known. The rates are per second since the look
    before, None in the first one, and where finished jobs were deleted meanwhile.
    """

    name: str
    paused: bool
    waiting: int
    oldest: float | None
    processing: int
    delayed: int
    blocked: int
    completed: int
    failed: int
    cancelled: int
    completed_rate: float | None
    failed_rate: float | None


class FailedJob(Struct, frozen=True, kw_only=True):
    """A job that failed, and why."""

    id: str
    name: str
    queue: str
    at: datetime | None
    attempt: int
    message: str


class Look(Struct, frozen=True, kw_only=True):
    """A store at one instant.

    `queues` has the busiest ones by name, then the others; `workers` is None on a store that knows
    of none. `failures` are the latest among the newest jobs. `pruning`: finished jobs are being
    deleted, so that the rates are lower bounds. `capped`: waiting and delayed jobs were counted up
    to a bound.
    """

    at: datetime
    all: QueueLook
    queues: tuple[QueueLook, ...]
    workers: Sequence[WorkerInfo] | None
    failures: tuple[FailedJob, ...]
    pruning: bool
    capped: bool


class Looks:
    """Takes one look after the other, by the clock of the queue."""

    def __init__(self, store: Queue) -> None:
        self._store = store
        self._before: Counts | None = None
        self._looked_at = 0.0
        self._pruned_at: float | None = None
        self._failures: tuple[FailedJob, ...] = ()
        self._failed: dict[str, int] | None = None  # by queue, when the failures were last read

    async def take(self) -> Look:
        """Look now. Raises `StoreError`; the next one then compares with the last that came off."""
        driver = await self._store.driver()
        counts = await driver.counts()
        instant, now = self._store.clock.monotonic(), self._store.clock.now()
        workers = None
        if Capability.PRESENCE in driver.capabilities:
            workers = tuple(await driver.workers())
        busiest = sorted(counts.by_queue, key=lambda name: _busy(counts.by_queue[name], name))
        names = [*sorted(busiest[:_AGED]), *sorted(busiest[_AGED:])]
        oldest = {
            name: await _oldest(driver, name, now)
            for name in names[:_AGED]
            if counts.by_queue[name].pending and name not in counts.paused
        }
        await self._read_failures(driver, counts)
        seconds = instant - self._looked_at
        before = self._before
        if before is not None and _fell(before, counts):
            self._pruned_at = instant
        look = Look(
            at=now,
            all=_queue("(all)", counts, before, seconds, _longest(oldest), paused=False),
            queues=tuple(
                _queue(
                    name,
                    counts.by_queue[name],
                    None if before is None else before.by_queue.get(name, Counts()),
                    seconds,
                    oldest.get(name),
                    paused=name in counts.paused,
                )
                for name in names
            ),
            workers=workers,
            failures=self._failures,
            pruning=self._pruned_at is not None and instant - self._pruned_at < _PRUNING,
            capped=counts.capped,
        )
        self._before, self._looked_at = counts, instant
        return look

    async def _read_failures(self, driver: Driver, counts: Counts) -> None:
        """Search for the latest failures where their number is another than it was."""
        failed = {name: each.failed for name, each in counts.by_queue.items() if each.failed}
        if failed == self._failed or Capability.INSPECT not in driver.capabilities:
            return
        found: list[FailedJob] = []
        cursor: str | None = None
        for _ in range(_PAGES if failed else 0):
            page = await driver.list(JobFilter(state=State.FAILED), cursor, _SHOWN - len(found))
            found += [
                FailedJob(
                    id=job.id,
                    name=job.name,
                    queue=job.queue,
                    at=job.finished_at,
                    attempt=job.attempt,
                    message="" if job.error is None else job.error.message,
                )
                for job in page.jobs
            ]
            cursor = page.cursor
            if cursor is None or len(found) >= _SHOWN:
                break
        self._failed = failed
        self._failures = tuple(sorted(found, key=lambda job: job.at or _EPOCH, reverse=True))


def _busy(counts: Counts, name: str) -> tuple[int, int, str]:
    return (-counts.processing, -counts.pending, name)


async def _oldest(driver: Driver, queue: str, now: datetime) -> float | None:
    """Seconds since the first waiting job of a queue fell due: after the epoch all are still to.

    A store that has to look further first answers with the next moment: then it is not known.
    """
    if Capability.NEXT_DUE not in driver.capabilities:
        return None
    due = await driver.next_due([queue], now=_EPOCH)
    if due is None or due < _EPOCH + _MOMENT:
        return None
    return max(0.0, (now - due).total_seconds())


def _longest(oldest: dict[str, float | None]) -> float | None:
    return max((age for age in oldest.values() if age is not None), default=None)


def _fell(before: Counts, now: Counts) -> bool:
    """Whether finished jobs are fewer than they were, in any queue."""
    return any(
        now.by_queue.get(name, Counts()).completed < each.completed
        or now.by_queue.get(name, Counts()).failed < each.failed
        for name, each in before.by_queue.items()
    )


def _queue(
    name: str,
    counts: Counts,
    before: Counts | None,
    seconds: float,
    oldest: float | None,
    *,
    paused: bool,
) -> QueueLook:
    return QueueLook(
        name=name,
        paused=paused,
        waiting=counts.pending,
        oldest=oldest,
        processing=counts.processing,
        delayed=counts.scheduled,
        blocked=counts.blocked,
        completed=counts.completed,
        failed=counts.failed,
        cancelled=counts.cancelled,
        completed_rate=None
        if before is None
        else _rate(counts.completed, before.completed, seconds),
        failed_rate=None if before is None else _rate(counts.failed, before.failed, seconds),
    )


def _rate(now: int, before: int, seconds: float) -> float | None:
    return (now - before) / seconds if now >= before and seconds > 0 else None
