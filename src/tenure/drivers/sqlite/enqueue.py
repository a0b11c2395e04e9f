"""The operation that stores new jobs: all of them or none."""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.sqlite.encoding import PENDING, json_list, micros, span, text_of
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.types import Enqueued, NewJob, content_digest

__all__ = ["enqueue"]

_INSERT = statement("job_insert")
_UNDO = statement("jobs_undo")
_CONTENTS = statement("contents_by_ids")
_GONE = statement("gone_by_ids")


def enqueue(jobs: Sequence[NewJob], now: datetime | None) -> Operation[list[Enqueued]]:
    """See `Driver.enqueue`."""
    # Before the transaction, since it needs no lock.
    contents = {job.id: content_digest(job) for job in jobs}

    def run(transaction: Transaction) -> list[Enqueued]:
        instant = transaction.time(now)
        known = _gone(transaction, contents, instant)
        fresh = [job for job in jobs if job.id not in known] if known else jobs
        seqs = transaction.arrivals(len(fresh))
        inserted = transaction.executemany(
            _INSERT,
            [
                _row(seq, job, contents[job.id], instant)
                for seq, job in zip(seqs, fresh, strict=True)
            ],
        ).rowcount
        stored_before: dict[str, bytes] = {}
        if inserted != len(fresh):
            stored_before = _stored_before(transaction, contents, seqs.start)
        known |= stored_before
        answers = [
            Enqueued.CREATED
            if known.get(job.id, contents[job.id]) == contents[job.id]
            else Enqueued.DUPLICATE
            for job in jobs
        ]
        if Enqueued.DUPLICATE in answers:
            transaction.execute(_UNDO, (seqs.start,))
            return answers
        for job in fresh:
            if job.id not in stored_before:
                transaction.moved(job.queue, None, PENDING)
        transaction.wakes = True
        return answers

    return run


def _row(seq: int, job: NewJob, content: bytes, now: int) -> tuple[object, ...]:
    if job.at is not None:
        run_at = micros(job.at)
    elif job.delay is not None:
        run_at = now + span(job.delay)
    else:
        run_at = now
    return (
        seq,
        job.id,
        job.name,
        job.queue,
        job.priority,
        run_at,
        job.max_attempts,
        job.timeout,
        content,
        now,
        text_of(job.headers) if job.headers else None,
        job.payload,
    )


def _gone(transaction: Transaction, contents: dict[str, bytes], now: int) -> dict[str, bytes]:
    """The contents of those ids that were deleted a moment ago."""
    if not transaction.remembers_deleted():
        return {}
    return dict(transaction.rows(_GONE, (json_list(contents), now)))


def _stored_before(
    transaction: Transaction, contents: dict[str, bytes], first: int
) -> dict[str, bytes]:
    """The contents of those ids that were stored before this call."""
    rows = transaction.rows(_CONTENTS, (json_list(contents),))
    return {job_id: content for job_id, content, seq in rows if seq < first}
