"""The operation that stores new jobs: all or none, but for those that a unique key keeps out."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from tenure.drivers.postgres.encoding import array_text, text_of
from tenure.drivers.postgres.heads import EVER
from tenure.drivers.postgres.pool import Runner
from tenure.types import Enqueued, Held, NewJob, content_digest

__all__ = [
    "arguments",
    "earliest",
    "enqueue",
    "enqueue_together",
    "is_plain",
    "limits_argument",
    "unique_arguments",
]

T = TypeVar("T")

_NAMES, _QUEUES, _PRIORITIES = 1, 2, 6  # places of columns


async def enqueue(
    runner: Runner, jobs: Sequence[NewJob], now: datetime | None
) -> list[Enqueued | Held]:
    """See `Driver.enqueue`.

    Where another transaction has the key of a job and is still open, the statement waits for its
    end: until then nobody knows whether the job is to be stored.
    """
    if not jobs:
        return []
    if is_plain(jobs):
        rows = await runner.fetch("enqueue", *_plain_arguments(jobs), now)
        others: list[bool] | None = rows[0][0]
        if others is None:
            return [Enqueued.CREATED] * len(jobs)
        return [Enqueued.DUPLICATE if other else Enqueued.CREATED for other in others]
    columns = (*arguments(jobs), *unique_arguments(jobs), limits_argument(jobs))
    others, holders = (await runner.fetch("enqueue_unique", *columns, now))[0]
    return [_answer(other, by) for other, by in zip(others or (), holders or (), strict=True)]


def _answer(other: bool | None, holder: str | None) -> Enqueued | Held:
    if holder is not None:
        return Held(holder)
    return Enqueued.DUPLICATE if other else Enqueued.CREATED


def is_plain(jobs: Sequence[NewJob]) -> bool:
    """Whether none of the jobs has a unique key."""
    return all(job.unique is None for job in jobs)


def earliest(jobs: Iterable[NewJob]) -> datetime | None:
    """Since when the jobs, or one that has the unique key of one, may be due: `Heads.put`."""
    ats: list[datetime] = []
    for job in jobs:
        if job.at is not None:
            ats.append(job.at)
        if job.unique is not None and job.unique.max_wait is not None:
            return EVER
    return min(ats, default=None)


def arguments(jobs: Sequence[NewJob]) -> tuple[list[Any] | None, ...]:
    """What every statement takes that stores jobs, one column after the other."""
    return (
        [job.id for job in jobs],
        [job.name for job in jobs],
        [job.queue for job in jobs],
        [job.payload for job in jobs],
        _given([job.delay for job in jobs]),
        _given([job.at for job in jobs]),
        [job.priority for job in jobs],
        _given([job.max_attempts for job in jobs]),
        _given([job.timeout for job in jobs]),
        _given([text_of(job.headers) if job.headers else None for job in jobs]),
        [content_digest(job) for job in jobs],
    )


def _given(column: list[T]) -> list[T] | None:
    """None for a column without values, which need not be sent one by one."""
    return None if column.count(None) == len(column) else column  # type: ignore[arg-type]


def _plain_arguments(jobs: Sequence[NewJob]) -> tuple[list[Any] | None, ...]:
    """What enqueue.sql takes: where jobs are alike, their names, queues and priorities are one."""
    columns = [*arguments(jobs), limits_argument(jobs)]
    for place in (_NAMES, _QUEUES, _PRIORITIES):
        column = columns[place] or []
        if column.count(column[0]) == len(column):
            columns[place] = column[:1]
    return tuple(columns)


def unique_arguments(jobs: Sequence[NewJob]) -> tuple[object, ...]:
    """What those take that know unique keys, after the columns of every one."""
    keys = [job.unique for job in jobs]
    return (
        [key and key.key for key in keys],
        [key and key.until for key in keys],
        [key and key.mode for key in keys],
        [key and key.period for key in keys],
        [key and key.max_wait for key in keys],
    )


def limits_argument(jobs: Sequence[NewJob]) -> list[str | None] | None:
    """The keys of limits, as the last of the columns; None where no job has any."""
    if not any(job.limits for job in jobs):
        return None
    return [array_text(job.limits) if job.limits else None for job in jobs]


async def enqueue_together(
    runner: Runner, batches: Sequence[Sequence[NewJob]]
) -> list[list[Enqueued | Held]] | None:
    """Several calls of `enqueue` in one round trip, each all or none by itself.

    None, with nothing stored, where a duplicate in one of several would keep the others out.
    """
    answers = await enqueue(runner, [job for batch in batches for job in batch], None)
    if len(batches) > 1 and Enqueued.DUPLICATE in answers:
        return None
    remaining = iter(answers)
    return [[next(remaining) for _ in batch] for batch in batches]
