"""The operation that stores new jobs: all of them or none.

Jobs that nothing is special about go in together, and only a surprise is looked into. In a batch
with unique keys or limits all ids and keys are looked up first, since its jobs bear on each other.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from tenure.drivers.sqlite import unique
from tenure.drivers.sqlite.encoding import PENDING, json_list, micros, span, text_of
from tenure.drivers.sqlite.holder import change_holder
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.statements import repeated, statement
from tenure.drivers.sqlite.transaction import Operation, Row, Transaction
from tenure.types import Enqueued, Held, NewJob, content_digest

__all__ = ["enqueue"]

_ABREAST = 50  # rows of one statement, for what is done once for each: steps, locks, savepoints
_INSERT = statement("job_insert")
_INSERT_ABREAST = repeated("job_insert", _ABREAST)
_INSERT_SPECIAL = statement("job_insert_special")
_UNDO = statement("jobs_undo")
_CONTENTS = statement("contents_by_ids")
_GONE = statement("gone_by_ids")


def enqueue(jobs: Sequence[NewJob], now: datetime | None) -> Operation[list[Enqueued | Held]]:
    """See `Driver.enqueue`."""
    # Before the transaction, since it needs no lock.
    contents = {job.id: content_digest(job) for job in jobs}
    plain = all(job.unique is None and not job.limits for job in jobs)

    def run(transaction: Transaction) -> list[Enqueued | Held]:
        storing = _Storing(transaction, jobs, contents, transaction.time(now))
        return storing.together() if plain else storing.one_by_one()

    return run


class _Storing:
    """One batch of new jobs."""

    def __init__(
        self,
        transaction: Transaction,
        jobs: Sequence[NewJob],
        contents: Mapping[str, bytes],
        now: int,
    ) -> None:
        self._transaction = transaction
        self._jobs = jobs
        self._contents = contents
        self._now = now

    def together(self) -> list[Enqueued | Held]:
        """Insert all, and undo that when one of them turns out to be another job's."""
        transaction = self._transaction
        known = self._gone()
        fresh = [job for job in self._jobs if job.id not in known] if known else self._jobs
        seqs = transaction.arrivals(len(fresh))
        stored_before: dict[str, bytes] = {}
        inserted = self._insert(self._rows(seqs, fresh))
        if inserted != len(fresh):
            stored_before = self._stored(before=seqs.start)
        answers = self._answers(known | stored_before)
        if Enqueued.DUPLICATE in answers:
            transaction.execute(_UNDO, (seqs.start,))
            return answers
        for job in fresh:
            if job.id not in stored_before:
                transaction.moved(job.queue, None, PENDING)
        transaction.wakes = True
        return answers

    def _insert(self, rows: list[Row]) -> int:
        """How many were new."""
        transaction = self._transaction
        inserted, whole = 0, len(rows) - len(rows) % _ABREAST
        for start in range(0, whole, _ABREAST):
            values = [value for row in rows[start : start + _ABREAST] for value in row]
            inserted += transaction.execute(_INSERT_ABREAST, values).rowcount
        if whole < len(rows):
            inserted += transaction.executemany(_INSERT, rows[whole:]).rowcount
        return inserted

    def one_by_one(self) -> list[Enqueued | Held]:
        """Decide job by job, ids first and then keys, and write afterwards."""
        transaction = self._transaction
        known = self._gone() | self._stored()
        answers = self._answers(known)
        keys = [job.unique.key for job in self._jobs if job.unique is not None]
        holders = unique.holders(transaction, keys, self._now)
        refused = Enqueued.DUPLICATE in answers
        fresh: list[NewJob] = []
        later: list[tuple[str, NewJob]] = []
        for n, job in enumerate(self._jobs):
            if job.id in known:
                continue
            holder = None if job.unique is None else holders.get(job.unique.key)
            if holder is not None:
                answers[n] = Held(holder)
                later.append((holder, job))
                continue
            fresh.append(job)
            if job.unique is not None and unique.lasts(job.unique) and not refused:
                holders[job.unique.key] = job.id
        if not refused:
            lanes = Lanes(transaction, self._now)
            self._write(fresh, lanes)
            for holder, job in later:
                change_holder(transaction, lanes, holder, job, _due(job, self._now), self._now)
            lanes.finish()
            transaction.wakes = True
        return answers

    def _write(self, fresh: Sequence[NewJob], lanes: Lanes) -> None:
        """Store jobs whose ids and keys are free."""
        transaction = self._transaction
        seqs = transaction.arrivals(len(fresh))
        arrived = list(zip(seqs, fresh, strict=True))
        # In the order of claims, as lanes want it.
        limited = sorted((_due(job, self._now), seq, job) for seq, job in arrived if job.limits)
        places = {
            seq: lanes.place(seq, job.queue, job.priority, due, text_of(job.limits))
            for due, seq, job in limited
        }
        special = [
            (
                None if job.unique is None else text_of(job.unique),
                text_of(job.limits) if job.limits else None,
                places.get(seq),
            )
            for seq, job in arrived
        ]
        plain = self._rows(seqs, fresh)
        rows = [(*row, *more) for row, more in zip(plain, special, strict=True)]
        transaction.executemany(_INSERT_SPECIAL, rows)
        keyed = [(job.id, job.unique) for job in fresh if job.unique is not None]
        unique.take(transaction, keyed, self._now)
        for job in fresh:
            transaction.moved(job.queue, None, PENDING)

    def _rows(self, seqs: range, fresh: Sequence[NewJob]) -> list[Row]:
        """What job_insert takes."""
        contents, now = self._contents, self._now
        return [
            (
                seq,
                job.id,
                job.name,
                job.queue,
                job.priority,
                now if job.at is None and job.delay is None else _due(job, now),
                job.max_attempts or 0,
                job.timeout or 0,
                # Not as bytes: those, like None, Python first offers to be adapted.
                bytearray(contents[job.id]),
                now,
                now,
                text_of(job.headers) if job.headers else "",
                bytearray(job.payload),
            )
            for seq, job in zip(seqs, fresh, strict=True)
        ]

    def _answers(self, known: Mapping[str, bytes]) -> list[Enqueued | Held]:
        contents = self._contents
        return [
            Enqueued.CREATED
            if known.get(job.id, contents[job.id]) == contents[job.id]
            else Enqueued.DUPLICATE
            for job in self._jobs
        ]

    def _gone(self) -> dict[str, bytes]:
        """The contents of those ids that were deleted a moment ago."""
        if not self._transaction.remembers_deleted():
            return {}
        return dict(self._transaction.rows(_GONE, (json_list(self._contents), self._now)))

    def _stored(self, before: int | None = None) -> dict[str, bytes]:
        """The contents of those ids that are stored, or were before an arrival number."""
        rows = self._transaction.rows(_CONTENTS, (json_list(self._contents),))
        return {job_id: content for job_id, content, seq in rows if before is None or seq < before}


def _due(job: NewJob, now: int) -> int:
    if job.at is not None:
        return micros(job.at)
    return now if job.delay is None else now + span(job.delay)
