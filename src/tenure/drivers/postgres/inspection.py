"""The operations that only look: one job, pages of jobs, counts, the next due time.

They lock nothing and never make a claim wait; each does a bounded amount of work.
"""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.postgres.encoding import NUMBERS
from tenure.drivers.postgres.pool import Runner
from tenure.drivers.postgres.rows import nearest, read_job, read_past
from tenure.errors import InvalidConfiguration
from tenure.history import PastAttempt
from tenure.states import State
from tenure.types import Counts, Job, JobFilter, Page

__all__ = ["claimable", "counts", "get", "history", "list_jobs", "next_due", "oldest_due"]

_EXAMINED = 20_000
_EXACT = 100_000
_ABOVE_ALL = 2**63 - 1

# The states whose jobs can be looked through in the order of arrival; the others among all jobs.
_SOURCES = {
    State.PROCESSING: " processing",
    State.FAILED: " failed",
    State.CANCELLED: " cancelled",
}


async def get(runner: Runner, job_id: str) -> Job[bytes] | None:
    """See `Driver.get`."""
    rows = await runner.fetch("get", job_id)
    return read_job(rows[0]) if rows else None


async def list_jobs(
    runner: Runner, which: JobFilter, cursor: str | None, limit: int
) -> Page[bytes]:
    """See `Driver.list`. The cursor is the seq above which all has been looked at."""
    top = _ABOVE_ALL
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")
        top = int(cursor)
    source = "" if which.state is None else _SOURCES.get(which.state, "")
    state = None if which.state is None else NUMBERS[which.state]
    # The floor first: what it bounds is then looked at, whatever is deleted in between.
    bottom = await runner.fetch(f"list_floor{source}", top, _EXAMINED - 1)
    floor = bottom[0][0] if bottom else 0
    # One more than asked tells whether there are more.
    rows = await runner.fetch(
        f"list_page{source}", top, floor, state, which.queue, which.name, limit + 1
    )
    jobs = tuple(read_job(row) for row in rows[:limit])
    if len(rows) > limit:
        following = str(rows[limit - 1][3]) if jobs else cursor
    else:
        following = str(floor) if bottom else None
    return Page(jobs=jobs, cursor=following)


async def history(runner: Runner, job_id: str) -> list[PastAttempt]:
    """See `Driver.history`."""
    return [read_past(row) for row in await runner.fetch("history", job_id)]


async def next_due(runner: Runner, queues: Sequence[str], now: datetime | None) -> datetime | None:
    """See `Driver.next_due`."""
    rows = await runner.fetch("next_due", list(queues), now)
    due: bytes | None = rows[0][0]
    return None if due is None else nearest(due)


async def oldest_due(
    runner: Runner, queues: Sequence[str], now: datetime | None
) -> list[datetime | None]:
    """See `Driver.oldest_due`."""
    rows = await runner.fetch("oldest_due", list(queues), now)
    return [None if due is None else nearest(due) for (due,) in rows]


async def claimable(runner: Runner, queues: Sequence[str]) -> bool:
    """Whether a claim of these queues would find a job."""
    rows = await runner.fetch("claimable", list(queues))
    return bool(rows[0][0])


async def counts(runner: Runner, now: datetime | None) -> Counts:
    """See `Driver.counts`."""
    by_queue: dict[str, Counts] = {}
    paused: set[str] = set()
    for row in sorted(await runner.fetch("counts", _EXACT + 1, now), key=lambda row: str(row[0])):
        queue, due, later, processing, blocked, completed, failed, cancelled, is_paused = row
        by_queue[queue] = Counts(
            pending=min(due, _EXACT),
            scheduled=min(later, _EXACT),
            blocked=blocked,
            processing=processing,
            completed=completed,
            failed=failed,
            cancelled=cancelled,
            capped=max(due, later) > _EXACT,
        )
        if is_paused:
            paused.add(queue)
    everything = by_queue.values()
    return Counts(
        pending=sum(each.pending for each in everything),
        scheduled=sum(each.scheduled for each in everything),
        blocked=sum(each.blocked for each in everything),
        processing=sum(each.processing for each in everything),
        completed=sum(each.completed for each in everything),
        failed=sum(each.failed for each in everything),
        cancelled=sum(each.cancelled for each in everything),
        capped=any(each.capped for each in everything),
        by_queue=by_queue,
        paused=frozenset(paused),
    )
