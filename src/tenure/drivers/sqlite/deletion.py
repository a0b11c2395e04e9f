"""The operations that delete jobs: named ones, those beyond retention, those a filter names.

A job that is processing is never deleted. Whatever is deleted leaves its id known for a minute.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime

from msgspec import Struct

from tenure.drivers.sqlite import limits, unique
from tenure.drivers.sqlite.encoding import (
    CANCELLED,
    COMPLETED,
    FAILED,
    NUMBERS,
    PROCESSING,
    json_list,
    span,
)
from tenure.drivers.sqlite.inspection import source
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.marks import Mark, marks
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.types import Answer, JobFilter, Retention

__all__ = ["Pruned", "delete", "prune", "purge", "purgeable"]

_REMEMBER = statement("gone_remember")
_DELETE = statement("jobs_delete")
_DELETE_HISTORY = statement("history_delete")
_TOTALS = statement("totals")
_TOTALS_FORGET = statement("totals_forget")
_FINISHED_BEFORE = statement("finished_before")
_GONE_FORGET = statement("gone_forget")
_PURGE_FIND = statement("purge_find")
_PURGE_CHECK = statement("purge_check")

_ID_KNOWN = 60_000_000  # microseconds; twice as long as a dispatch is repeated
_FRESH = 60_000_000  # microseconds; a job that ended more recently stays
_FORGOTTEN_AT_ONCE = 10_000
# SQLite walks all pages of what it deletes, and many builds overwrite them: up to 17 ms for a MB.
_BYTES_AT_ONCE = 8_000_000


def delete(job_ids: Sequence[str], now: datetime | None) -> Operation[list[Answer]]:
    """See `Driver.delete`."""

    def run(transaction: Transaction) -> list[Answer]:
        found = marks(transaction, job_ids)
        doomed: list[Mark] = []

        def one(job_id: str) -> Answer:
            mark = found.get(job_id)
            if mark is None:
                return Answer.UNKNOWN
            if mark.state == PROCESSING:
                return Answer.RUNNING
            doomed.append(found.pop(job_id))
            return Answer.DONE

        answers = [one(job_id) for job_id in job_ids]
        instant = transaction.time(now)
        _remove(transaction, [mark.seq for mark in doomed], instant)
        limited = [mark.seq for mark in doomed if mark.limits is not None]
        _close_up(transaction, limited, instant)
        unique.free(transaction, [mark.id for mark in doomed if mark.unique_key is not None])
        for mark in doomed:
            _count(transaction, mark.queue, mark.state, _Extent(number=1, size=mark.size))
        return answers

    return run


class Pruned(Struct, frozen=True, kw_only=True):
    """How many jobs one transaction of a prune deleted, and whether it stopped for its bytes."""

    number: int
    cut: bool


def prune(retention: Retention, limit: int, now: datetime | None) -> Operation[Pruned]:
    """One step of `Driver.prune`. Its bytes are bounded, since all others who write wait for it."""
    ages = {
        COMPLETED: retention.completed,
        FAILED: retention.failed,
        CANCELLED: retention.cancelled,
    }

    def run(transaction: Transaction) -> Pruned:
        instant = transaction.time(now)
        transaction.execute(_GONE_FORGET, (instant, _FORGOTTEN_AT_ONCE))
        limits.mend(transaction, instant)
        unique.forget(transaction, instant, _FORGOTTEN_AT_ONCE)
        transaction.execute(_TOTALS_FORGET)
        pruning = _Pruning(transaction, instant, limit)
        for queue, state, number, size in transaction.rows(_TOTALS):
            if state not in ages:
                continue
            age = ages[state]
            gone = _Extent() if age is None else pruning.older(queue, state, age)
            if state == COMPLETED:
                surplus = _Extent(
                    number=_beyond(number - gone.number, retention.completed_count),
                    size=_beyond(size - gone.size, retention.completed_bytes),
                )
                pruning.oldest(queue, surplus)
        return Pruned(number=limit - pruning.left, cut=pruning.cut)

    return run


class _Extent(Struct, frozen=True, kw_only=True):
    """How many jobs, and of how many bytes of payload and result."""

    number: int = 0
    size: int = 0


def _beyond(stored: int, bound: int | None) -> int:
    return 0 if bound is None else max(0, stored - bound)


_ALL = _Extent(number=2**63, size=2**63)


class _Pruning:
    """One step of prune, while it has deletions left. Reads no more than what is to go."""

    def __init__(self, transaction: Transaction, now: int, limit: int) -> None:
        self._transaction = transaction
        self._now = now
        self._settled = now - _FRESH + 1  # the statement looks before an instant
        self._room = _BYTES_AT_ONCE
        self.left = limit
        self.cut = False

    def older(self, queue: str, state: int, age: float) -> _Extent:
        """Delete what ended longer than `age` seconds ago; how much."""
        before = min(self._now - span(age), self._settled)
        return self._delete(queue, state, before, _ALL)

    def oldest(self, queue: str, surplus: _Extent) -> None:
        """Delete the completed jobs that ended first, until so many and so much are gone."""
        if surplus.number or surplus.size:
            self._delete(queue, COMPLETED, self._settled, surplus)

    def _delete(self, queue: str, state: int, before: int, wanted: _Extent) -> _Extent:
        seqs: list[int] = []
        deleted = 0
        parameters = (state, queue, before, self.left)
        with closing(self._transaction.each(_FINISHED_BEFORE, parameters)) as ended:
            for seq, size in ended:
                if len(seqs) >= wanted.number and deleted >= wanted.size:
                    break
                if deleted >= self._room:
                    self.cut = True
                    break
                seqs.append(seq)
                deleted += size
        gone = _Extent(number=len(seqs), size=deleted)
        if seqs:
            _remove(self._transaction, seqs, self._now)
            _count(self._transaction, queue, state, gone)
            self.left -= gone.number
            self._room -= gone.size
        return gone


def purgeable(which: JobFilter, limit: int) -> Operation[list[int]]:
    """Find jobs to purge, on a snapshot: looking through a large table must not stop claims."""
    sql = _PURGE_FIND.format(source=source(which.state))

    def run(transaction: Transaction) -> list[int]:
        return [seq for (seq,) in transaction.rows(sql, (*_match(which), limit))]

    return run


def purge(seqs: Sequence[int], which: JobFilter, now: datetime | None) -> Operation[int]:
    """Delete those of the found jobs that still match; how many."""

    def run(transaction: Transaction) -> int:
        rows = transaction.rows(_PURGE_CHECK, (json_list(seqs), *_match(which)))
        instant = transaction.time(now)
        _remove(transaction, [row[0] for row in rows], instant)
        limited: list[int] = []
        keyed: list[str] = []
        for seq, queue, state, job_id, keys, size in rows:
            _count(transaction, queue, state, _Extent(number=1, size=size))
            if job_id is not None:
                keyed.append(job_id)
            if keys is not None:
                limited.append(seq)
        unique.free(transaction, keyed)
        _close_up(transaction, limited, instant)
        return len(rows)

    return run


def _close_up(transaction: Transaction, limited: Sequence[int], now: int) -> None:
    """Deleted jobs had limits: let the next ones of their lanes come forward."""
    if limited:
        lanes = Lanes(transaction, now)
        for seq in limited:
            lanes.left(seq)
        lanes.finish()
        transaction.wakes |= lanes.exposed


def _count(transaction: Transaction, queue: str, state: int, gone: _Extent) -> None:
    transaction.moved(queue, state, None, gone.number)
    if state == COMPLETED:
        transaction.kept(queue, -gone.size)


def _match(which: JobFilter) -> tuple[object, ...]:
    state = None if which.state is None else NUMBERS[which.state]
    return (state, which.queue, which.name)


def _remove(transaction: Transaction, seqs: Iterable[int], now: int) -> None:
    """Delete rows and remember their ids for a minute. The caller keeps totals and keys."""
    given = json_list(seqs)
    transaction.execute(_REMEMBER, (given, now + _ID_KNOWN))
    transaction.deleted_some()
    transaction.execute(_DELETE, (given,))
    transaction.execute(_DELETE_HISTORY, (given,))
