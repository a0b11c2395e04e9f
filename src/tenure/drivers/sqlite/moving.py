"""The operations that give out whole jobs, and take in those of another store.

A page of a dump is one look at a snapshot. What is taken in is decided in the transaction that
stores it: ids first, then unique keys, and then all of the batch or nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime

from tenure.drivers.sqlite import unique
from tenure.drivers.sqlite.encoding import (
    NUMBERS,
    failure_text,
    json_list,
    micros,
    nearest,
    text_of,
    writable,
)
from tenure.drivers.sqlite.history import read_past
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.rows import read_job
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Row, Transaction
from tenure.errors import InvalidConfiguration
from tenure.history import PastAttempt
from tenure.moved import (
    DUMP_BYTES,
    Dump,
    DumpPlace,
    KeyHold,
    Restored,
    StoredJob,
    at_rest,
    size_of,
)
from tenure.standing import ScheduleRecord
from tenure.states import State
from tenure.types import Held, Job

__all__ = ["dump", "restore", "restore_schedules"]

_PAGE = statement("dump_page")
_HISTORY = statement("dump_history")
_KEYS = statement("dump_keys")
_NEWEST = statement("newest_seq")
_CONTENTS = statement("contents_by_ids")
_GONE = statement("gone_by_ids")
_INSERT = statement("job_restore")
_REMEMBER = statement("history_restore")
_TAKE = statement("unique_take")
_INSERT_SCHEDULE = statement("schedule_restore")
_DEFINITION = statement("schedule_definition")


# --- out ----------------------------------------------------------------------------------------


def dump(cursor: str | None, limit: int, now: datetime | None) -> Operation[Dump]:
    """See `Driver.dump`. The numbers of arrival are the seqs."""
    given = None if cursor is None else DumpPlace.read(cursor)
    if cursor is not None and given is None:
        raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")

    def run(transaction: Transaction) -> Dump:
        place = given or DumpPlace(0, transaction.execute(_NEWEST).fetchone()[0])
        rows, more = _page(transaction, place, limit)
        histories = _histories(transaction, [row[0] for row in rows])
        keys = _keys(transaction, [row[1] for row in rows if row[21] is not None], now)
        jobs = tuple(_whole(row, histories, keys) for row in rows)
        following = DumpPlace(rows[-1][0] if rows else place.after, place.last).cursor()
        return Dump(jobs=jobs, cursor=following if more else None)

    return run


def _page(transaction: Transaction, place: DumpPlace, limit: int) -> tuple[list[Row], bool]:
    """The rows, and whether there are more. One more than asked tells it."""
    rows: list[Row] = []
    size = 0
    with closing(transaction.each(_PAGE, (place.after, place.last, limit + 1))) as found:
        for row in found:
            size += len(row[20]) + len(row[17] or b"")
            if len(rows) == limit or (rows and size > DUMP_BYTES):
                return rows, True
            rows.append(row)
    return rows, False


def _histories(transaction: Transaction, seqs: Sequence[int]) -> dict[int, list[PastAttempt]]:
    found: dict[int, list[PastAttempt]] = {}
    for seq, *past in transaction.rows(_HISTORY, (json_list(seqs),)):
        found.setdefault(seq, []).append(read_past(*past))
    return found


def _keys(
    transaction: Transaction, ids: Sequence[str], now: datetime | None
) -> dict[tuple[str, str], KeyHold]:
    """By id and key. A mark that an earlier job of the same id has left is not the job's."""
    rows = transaction.rows(_KEYS, (json_list(ids), transaction.time(now))) if ids else []
    return {
        (job_id, key): KeyHold(until=None if until is None else nearest(until))
        for job_id, key, until in rows
    }


def _whole(
    row: Row,
    histories: Mapping[int, Sequence[PastAttempt]],
    keys: Mapping[tuple[str, str], KeyHold],
) -> StoredJob:
    job, damage = read_job(row[:23])
    return StoredJob(
        job=job,
        content=row[23],
        key=None if job.unique is None else keys.get((job.id, job.unique.key)),
        history=tuple(histories.get(row[0], ())),
        damage=damage,
    )


# --- in -----------------------------------------------------------------------------------------


def restore(jobs: Sequence[StoredJob], now: datetime | None) -> Operation[list[Restored | Held]]:
    """See `Driver.restore`."""
    resting = [at_rest(each) for each in jobs]

    def run(transaction: Transaction) -> list[Restored | Held]:
        return _Restoring(transaction, resting, transaction.time(now)).run()

    return run


class _Restoring:
    """One batch of whole jobs."""

    def __init__(self, transaction: Transaction, jobs: Sequence[StoredJob], now: int) -> None:
        self._transaction = transaction
        self._jobs = jobs
        self._now = now

    def run(self) -> list[Restored | Held]:
        answers = self._judged()
        if all(answer in (Restored.STORED, Restored.KNOWN) for answer in answers):
            self._write(
                [
                    each
                    for each, answer in zip(self._jobs, answers, strict=True)
                    if answer is Restored.STORED
                ]
            )
        return answers

    def _judged(self) -> list[Restored | Held]:
        known = self._known()
        taking = [each for each in self._jobs if each.job.id not in known and self._holds(each)]
        keys = [_key(each.job) for each in taking]
        holders = unique.holders(self._transaction, keys, self._now)
        answers: list[Restored | Held] = []
        for each in self._jobs:
            content = known.get(each.job.id)
            if content is not None:
                same = content == each.content
                answers.append(Restored.KNOWN if same else Restored.DUPLICATE)
            elif not self._holds(each):
                answers.append(Restored.STORED)
            elif (holder := holders.setdefault(_key(each.job), each.job.id)) != each.job.id:
                answers.append(Held(holder))
            else:
                answers.append(Restored.STORED)
        return answers

    def _holds(self, each: StoredJob) -> bool:
        """Whether it takes its unique key."""
        if each.key is None or each.job.unique is None:
            return False
        return each.key.until is None or micros(each.key.until) > self._now

    def _known(self) -> dict[str, bytes]:
        """The contents of those ids that are stored, or were deleted a moment ago."""
        transaction, ids = self._transaction, json_list(each.job.id for each in self._jobs)
        known: dict[str, bytes] = {}
        if transaction.remembers_deleted():
            known.update(transaction.rows(_GONE, (ids, self._now)))
        known.update((row[0], row[1]) for row in transaction.rows(_CONTENTS, (ids,)))
        return known

    def _write(self, fresh: Sequence[StoredJob]) -> None:
        transaction = self._transaction
        arrived = list(zip(transaction.arrivals(len(fresh)), fresh, strict=True))
        lanes = Lanes(transaction, self._now)
        places = self._places(lanes, arrived)
        transaction.executemany(
            _INSERT, [_row(seq, each.job, each.content, places.get(seq)) for seq, each in arrived]
        )
        lanes.finish()
        transaction.executemany(
            _REMEMBER, [_past(seq, past) for seq, each in arrived for past in each.history]
        )
        transaction.executemany(_TAKE, [_taken(each) for each in fresh if self._holds(each)])
        for each in fresh:
            transaction.moved(each.job.queue, None, NUMBERS[each.job.state])
            if each.job.state is State.COMPLETED:
                transaction.kept(each.job.queue, size_of(each.job))
        transaction.wakes = True

    def _places(
        self, lanes: Lanes, arrived: Iterable[tuple[int, StoredJob]]
    ) -> dict[int, int | None]:
        """The lanes of those that wait and have limits, given in the order of claims."""
        limited = sorted(
            (micros(each.job.run_at), seq, each.job.queue, each.job.priority, each.job.limits)
            for seq, each in arrived
            if each.job.limits and each.job.state is State.PENDING
        )
        return {
            seq: lanes.place(seq, queue, priority, due, text_of(limits))
            for due, seq, queue, priority, limits in limited
        }


def _key(job: Job[bytes]) -> str:
    assert job.unique is not None  # it was asked before
    return job.unique.key


def _row(seq: int, job: Job[bytes], content: bytes, lane: int | None) -> Row:
    """What job_restore takes."""
    return (
        seq,
        job.id,
        job.name,
        job.queue,
        NUMBERS[job.state],
        job.priority,
        micros(job.run_at),
        job.attempt,
        job.stalls,
        job.serial,
        job.max_attempts,
        job.timeout,
        job.cancel_requested,
        content,
        micros(job.created_at),
        micros(job.updated_at),
        None if job.finished_at is None else micros(job.finished_at),
        None if job.unique is None else text_of(job.unique),
        text_of(job.limits) if job.limits else None,
        lane,
        text_of(job.headers) if job.headers else None,
        None if job.error is None else failure_text(job.error),
        job.progress,
        job.result,
        job.payload,
    )


def _past(seq: int, past: PastAttempt) -> Row:
    """What history_restore takes."""
    return (
        seq,
        past.serial,
        past.attempt,
        past.outcome,
        micros(past.started_at),
        micros(past.ended_at),
        past.worker,
        writable(past.kind),
        writable(past.message),
    )


def _taken(each: StoredJob) -> Row:
    """What unique_take takes."""
    job, key = each.job, each.key
    assert job.unique is not None
    assert key is not None  # both were asked before
    until = None if key.until is None else micros(key.until)
    return (job.unique.key, job.id, until, job.unique.mode == "throttle")


def restore_schedules(schedules: Sequence[ScheduleRecord]) -> Operation[list[Restored]]:
    """See `Driver.restore_schedules`."""

    def judged(transaction: Transaction, record: ScheduleRecord) -> Restored:
        rows = transaction.rows(_DEFINITION, (record.id,))
        if not rows:
            return Restored.STORED
        return Restored.KNOWN if rows[0][0] == record.definition else Restored.DUPLICATE

    def run(transaction: Transaction) -> list[Restored]:
        answers = [judged(transaction, each) for each in schedules]
        if Restored.DUPLICATE not in answers:
            transaction.executemany(
                _INSERT_SCHEDULE,
                [
                    (
                        each.id,
                        each.revision,
                        each.definition,
                        micros(each.created_at),
                        micros(each.last),
                        each.paused,
                    )
                    for each, answer in zip(schedules, answers, strict=True)
                    if answer is Restored.STORED
                ],
            )
        return answers

    return run
