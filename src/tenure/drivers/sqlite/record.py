"""The operations that write under a hold: outcomes and progress. Others change nothing (I3)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tenure.driver import RecordItem
from tenure.drivers.sqlite import unique
from tenure.drivers.sqlite.encoding import (
    COMPLETED,
    NUMBERS,
    PENDING,
    PROCESSING,
    failure_text,
    json_list,
    span,
)
from tenure.drivers.sqlite.history import remember
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.marks import Mark, marks
from tenure.drivers.sqlite.rows import HIGHEST
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.history import tried
from tenure.outcomes import Completed, Failed, Outcome, Retried, outcome_digest, settle
from tenure.states import TERMINAL
from tenure.types import Hold, Recorded

__all__ = ["progress", "record"]

_SETTLE_COMPLETED = statement("settle_completed")
_SETTLE_OTHER = statement("settle_other")
_SETTLE_PLAIN = statement("settle_plain")
_FIND = statement("settle_find")
_PROGRESS = statement("progress_set")

_COMPLETED = outcome_digest(Completed())


def record(items: Sequence[RecordItem], now: datetime | None) -> Operation[list[Recorded]]:
    """See `Driver.record`."""
    # Before the transaction, since it needs no lock.
    digests = [outcome_digest(outcome) for _, outcome in items]

    def run(transaction: Transaction) -> list[Recorded]:
        return _Recording(transaction, transaction.time(now)).run(items, digests)

    return run


class _Held(NamedTuple):
    """What holds have in common, as those of jobs that were claimed together mostly do."""

    serial: int
    token: str


def _plain(items: Sequence[RecordItem]) -> dict[_Held, list[int]]:
    """The places of completions without a result, by what their holds have in common."""
    places: dict[_Held, list[int]] = {}
    for place, (hold, outcome) in enumerate(items):
        if isinstance(outcome, Completed) and outcome.result is None and _storable(hold):
            places.setdefault(_Held(hold.serial, hold.token), []).append(place)
    return places


def _storable(hold: Hold) -> bool:
    """Whether a store can have given such a hold."""
    return 0 < hold.serial <= HIGHEST and hold.token.isascii()


class _Recording:
    """One batch of outcomes: plain completions in two statements, others decided one by one."""

    def __init__(self, transaction: Transaction, now: int) -> None:
        self._transaction = transaction
        self._now = now
        self._completed: list[tuple[object, ...]] = []
        self._others: list[tuple[object, ...]] = []
        self._freed: list[str] = []  # jobs with a unique key that have ended
        self._limited: list[Mark] = []  # jobs with limits whose hold has ended

    def run(self, items: Sequence[RecordItem], digests: Sequence[str]) -> list[Recorded]:
        left = [*range(len(items))]
        answers = [Recorded.APPLIED] * len(items)
        for hold, places in _plain(items).items():
            if self._complete(hold, [items[place][0].job_id for place in places]):
                done = frozenset(places)
                left = [place for place in left if place not in done]
        if left:
            found = marks(self._transaction, [items[place][0].job_id for place in left])
            for place in left:
                hold, outcome = items[place]
                answers[place] = self._settle(hold, outcome, found, digests[place])
            self._write()
        return answers

    def _complete(self, held: "_Held", job_ids: Sequence[str]) -> bool:
        """End jobs without a result where each is held so and nothing else is to be done."""
        number, queue, last_queue, size, seqs = self._transaction.rows(
            _FIND, (json_list(job_ids), held.serial, held.token)
        )[0]
        if number != len(job_ids) or queue != last_queue:
            return False
        self._transaction.execute(_SETTLE_PLAIN, (self._now, _COMPLETED, seqs))
        self._transaction.moved(queue, PROCESSING, COMPLETED, number)
        self._transaction.kept(queue, int(size))
        return True

    def _settle(
        self, hold: Hold, outcome: Outcome, found: Mapping[str, Mark], digest: str
    ) -> Recorded:
        mark = found.get(hold.job_id)
        if mark is None:
            return Recorded.UNKNOWN
        if not mark.held_by(hold):
            return Recorded.REPEATED if mark.settled_by(hold, digest) else Recorded.FENCED
        self._apply(mark, outcome, digest)
        if mark.unique_key is not None and mark.state != PENDING:
            self._freed.append(mark.id)
        if mark.limits is not None:
            self._limited.append(mark)
        return Recorded.APPLIED

    def _write(self) -> None:
        if self._completed:
            self._transaction.executemany(_SETTLE_COMPLETED, self._completed)
        if self._others:
            self._transaction.executemany(_SETTLE_OTHER, self._others)
        unique.free(self._transaction, self._freed)
        if self._limited:
            self._give_back()

    def _give_back(self) -> None:
        """Count the holds of keys that have ended, and find a place for what waits again."""
        lanes = Lanes(self._transaction, self._now)
        freed = lanes.ended(mark.limits for mark in self._limited)
        for mark in self._limited:
            if mark.state == PENDING:
                lanes.enter(mark.seq)
        lanes.freed(freed)
        lanes.finish()
        self._transaction.wakes |= lanes.exposed

    def _apply(self, mark: Mark, outcome: Outcome, digest: str) -> None:
        if isinstance(outcome, Completed):
            # Most outcomes are this one, and what it makes of a job depends on nothing else.
            self._completed.append((outcome.result, self._now, digest, mark.seq))
            mark.state = COMPLETED
            self._transaction.moved(mark.queue, PROCESSING, COMPLETED)
            # Nothing but a completion stores a result, so that the mark's size is the payload's.
            self._transaction.kept(mark.queue, mark.size + len(outcome.result or b""))
            return
        after = settle(
            outcome,
            attempt=mark.attempt,
            stalls=mark.stalls,
            cancel_requested=mark.cancel_requested != 0,
        )
        how = tried(outcome)
        if how is not None:
            remember(self._transaction, mark.seq, mark.serial, how, self._now)
        mark.state = NUMBERS[after.state]
        self._others.append(
            (
                mark.state,
                after.attempt,
                after.stalls,
                mark.run_at if after.delay is None else self._now + span(after.delay),
                self._now if after.state in TERMINAL else None,
                failure_text(outcome.failure) if isinstance(outcome, Failed | Retried) else None,
                digest,
                self._now,
                mark.seq,
            )
        )
        self._transaction.moved(mark.queue, PROCESSING, mark.state)
        self._transaction.wakes |= mark.state == PENDING


def progress(hold: Hold, value: bytes, now: datetime | None) -> Operation[Recorded]:
    """See `Driver.progress`."""

    def run(transaction: Transaction) -> Recorded:
        mark = marks(transaction, [hold.job_id]).get(hold.job_id)
        if mark is None:
            return Recorded.UNKNOWN
        if not mark.held_by(hold):
            return Recorded.FENCED
        transaction.execute(_PROGRESS, (value, transaction.time(now), mark.seq))
        return Recorded.APPLIED

    return run
