"""The operations that only look: one job, pages of jobs, counts, the next due time.

They run on a snapshot and never make a claim wait; each does a bounded amount of work.
"""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.sqlite.claim import paused_queues, priorities
from tenure.drivers.sqlite.encoding import NUMBERS, PENDING, STATES, nearest
from tenure.drivers.sqlite.limits import rates_over
from tenure.drivers.sqlite.rows import read_job
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.errors import InvalidConfiguration
from tenure.states import State
from tenure.types import Counts, Job, JobFilter, Page

__all__ = ["counts", "get", "list_jobs", "next_due", "oldest_due", "source"]

_GET = statement("job_get")
_FLOOR = statement("list_floor")
_PAGE = statement("list_page")
_TOTALS = statement("totals")
_DUE = statement("due_count")
_LATER = statement("later_count")
_DUE_AFTER = statement("due_after")
_OLDEST = statement("oldest_due")
_KEPT_OLDEST = statement("kept_oldest_due")
_KEPT_DUE = statement("kept_due_count")
_KEPT_LATER = statement("kept_later_count")
_KEPT_DUE_AFTER = statement("kept_due_after")

_EXAMINED = 20_000
_EXACT = 100_000
_ABOVE_ALL = 2**63 - 1


def source(state: State | None) -> str:
    """Where the jobs of a state are found in order of arrival: SQL for a {source}."""
    match state:
        case State.PROCESSING:
            return "INDEXED BY tenure_jobs_processing WHERE state = 2"
        case State.FAILED | State.CANCELLED:
            number = NUMBERS[state]
            return f"INDEXED BY tenure_jobs_unsuccessful WHERE state IN (4, 5) AND state = {number}"
        case _:
            return "NOT INDEXED WHERE true"


def get(job_id: str) -> Operation[Job[bytes] | None]:
    """See `Driver.get`."""

    def run(transaction: Transaction) -> Job[bytes] | None:
        rows = transaction.rows(_GET, (job_id,))
        return read_job(rows[0])[0] if rows else None

    return run


def list_jobs(which: JobFilter, cursor: str | None, limit: int) -> Operation[Page[bytes]]:
    """See `Driver.list`. The cursor is the seq above which all has been looked at."""
    top = _ABOVE_ALL
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")
        top = int(cursor)
    candidates = source(which.state)
    floor_sql, page_sql = _FLOOR.format(source=candidates), _PAGE.format(source=candidates)
    state = None if which.state is None else NUMBERS[which.state]

    def run(transaction: Transaction) -> Page[bytes]:
        bottom = transaction.execute(floor_sql, (top, _EXAMINED - 1)).fetchone()
        floor = 0 if bottom is None else bottom[0]
        # One more than asked tells whether there are more.
        rows = transaction.rows(page_sql, (top, floor, state, which.queue, which.name, limit + 1))
        jobs = tuple(read_job(row)[0] for row in rows[:limit])
        if len(rows) > limit:
            following = str(rows[limit - 1][0]) if jobs else cursor
        else:
            following = None if bottom is None else str(floor)
        return Page(jobs=jobs, cursor=following)

    return run


def next_due(queues: Sequence[str], now: datetime | None) -> Operation[datetime | None]:
    """See `Driver.next_due`."""

    def run(transaction: Transaction) -> datetime | None:
        instant = transaction.time(now)
        paused = paused_queues(transaction)
        times = [
            transaction.execute(_DUE_AFTER, (queue, priority, instant)).fetchone()[0]
            for queue in queues
            if queue not in paused
            for priority in priorities(transaction, queue)
        ]
        for queue in queues:
            if queue not in paused:
                times += transaction.execute(_KEPT_DUE_AFTER, (queue, instant)).fetchone()
                times += rates_over(transaction, queue, instant)
        earliest = min((time for time in times if time is not None), default=None)
        return None if earliest is None else nearest(earliest)

    return run


def oldest_due(queues: Sequence[str], now: datetime | None) -> Operation[Sequence[datetime | None]]:
    """See `Driver.oldest_due`."""

    def run(transaction: Transaction) -> Sequence[datetime | None]:
        instant = transaction.time(now)
        return [_oldest(transaction, queue, instant) for queue in queues]

    return run


def _oldest(transaction: Transaction, queue: str, now: int) -> datetime | None:
    times = list(transaction.execute(_KEPT_OLDEST, (queue, now)).fetchone())
    for priority in priorities(transaction, queue):
        times += transaction.execute(_OLDEST, (queue, priority, now)).fetchone()
    earliest = min((time for time in times if time is not None), default=None)
    return None if earliest is None else nearest(earliest)


def counts(now: datetime | None) -> Operation[Counts]:
    """See `Driver.counts`. From the kept totals; only what is due is counted, within a bound."""

    def run(transaction: Transaction) -> Counts:
        instant = transaction.time(now)
        paused = paused_queues(transaction)
        totals: dict[str, dict[int, int]] = {queue: {} for queue in paused}
        for queue, state, n, _ in transaction.rows(_TOTALS):
            totals.setdefault(queue, {})[state] = n
        by_queue = {
            queue: _queue_counts(transaction, queue, states, instant)
            for queue, states in sorted(totals.items())
        }
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

    return run


def _queue_counts(transaction: Transaction, queue: str, states: dict[int, int], now: int) -> Counts:
    number = {state: states.get(NUMBERS[state], 0) for state in STATES}
    waiting = states.get(PENDING, 0)
    due = _counted(transaction, _DUE, _KEPT_DUE, queue, now) if waiting else 0
    later, capped = waiting - due, False
    if due == _EXACT:
        # Cut there, unless the other part is short enough to be counted and taken off the total.
        later = _counted(transaction, _LATER, _KEPT_LATER, queue, now)
        capped = later == _EXACT
        due = due if capped else waiting - later
    return Counts(
        pending=due,
        scheduled=later,
        blocked=number[State.BLOCKED],
        processing=number[State.PROCESSING],
        completed=number[State.COMPLETED],
        failed=number[State.FAILED],
        cancelled=number[State.CANCELLED],
        capped=capped,
    )


def _counted(transaction: Transaction, sql: str, kept: str, queue: str, now: int) -> int:
    """How many waiting jobs of a queue, those in lanes and over all priorities, up to the bound."""
    found: int = transaction.execute(kept, (queue, now, _EXACT)).fetchone()[0]
    for priority in priorities(transaction, queue):
        left = _EXACT - found
        if left <= 0:
            break
        found += transaction.execute(sql, (queue, priority, now, left)).fetchone()[0]
    return found
