"""The operation that stores new jobs: all of them or none."""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.postgres.encoding import text_of
from tenure.drivers.postgres.pool import Runner
from tenure.types import Enqueued, NewJob, content_digest

__all__ = ["enqueue", "enqueue_together"]


async def enqueue(runner: Runner, jobs: Sequence[NewJob], now: datetime | None) -> list[Enqueued]:
    """See `Driver.enqueue`."""
    if not jobs:
        return []
    rows = await runner.fetch(
        "enqueue",
        [job.id for job in jobs],
        [job.name for job in jobs],
        [job.queue for job in jobs],
        [job.payload for job in jobs],
        [job.delay for job in jobs],
        [job.at for job in jobs],
        [job.priority for job in jobs],
        [job.max_attempts for job in jobs],
        [job.timeout for job in jobs],
        [text_of(job.headers) if job.headers else None for job in jobs],
        [content_digest(job) for job in jobs],
        now,
    )
    others: list[bool] | None = rows[0][0]
    if others is None:
        return [Enqueued.CREATED] * len(jobs)
    return [Enqueued.DUPLICATE if other else Enqueued.CREATED for other in others]


async def enqueue_together(
    runner: Runner, batches: Sequence[Sequence[NewJob]]
) -> list[list[Enqueued]] | None:
    """Several calls of `enqueue` in one round trip, each all or none by itself.

    None, with nothing stored, where a duplicate in one of several would keep the others out.
    """
    answers = await enqueue(runner, [job for batch in batches for job in batch], None)
    if len(batches) > 1 and Enqueued.DUPLICATE in answers:
        return None
    remaining = iter(answers)
    return [[next(remaining) for _ in batch] for batch in batches]
