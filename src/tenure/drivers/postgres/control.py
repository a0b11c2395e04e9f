"""How people and programs steer jobs: cancel, retry, move, delete, pause, prune.

Each is one statement; what it decides, it decides under the locks of its rows, in the server.
"""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.postgres.encoding import NUMBERS
from tenure.drivers.postgres.pool import Runner
from tenure.types import Answer, JobFilter, ManualRetry, Move, Retention

__all__ = ["cancel", "delete", "move", "pause", "prune", "purge", "retry"]


async def cancel(runner: Runner, job_ids: Sequence[str], now: datetime | None) -> list[Answer]:
    """See `Driver.cancel`."""
    return await _answers(runner, "cancel", list(job_ids), now)


async def retry(runner: Runner, items: Sequence[ManualRetry], now: datetime | None) -> list[Answer]:
    """See `Driver.retry`."""
    ids = [item.job_id for item in items]
    return await _answers(runner, "retry", ids, [item.serial for item in items], now)


async def move(runner: Runner, items: Sequence[Move], now: datetime | None) -> list[Answer]:
    """See `Driver.move`."""
    return await _answers(
        runner,
        "move",
        [item.job_id for item in items],
        [item.queue for item in items],
        [item.at for item in items],
        [item.priority for item in items],
        [item.serial for item in items],
        now,
    )


async def delete(runner: Runner, job_ids: Sequence[str], now: datetime | None) -> list[Answer]:
    """See `Driver.delete`."""
    return await _answers(runner, "delete", list(job_ids), now)


async def _answers(runner: Runner, statement: str, *arguments: object) -> list[Answer]:
    rows = await runner.fetch(statement, *arguments)
    return [Answer(answer) for answer in rows[0][0]]


async def pause(runner: Runner, queue: str, paused: bool) -> None:
    """See `Driver.pause`."""
    await runner.fetch("pause" if paused else "resume", queue)


async def prune(runner: Runner, retention: Retention, limit: int, now: datetime | None) -> int:
    """See `Driver.prune`."""
    rows = await runner.fetch(
        "prune",
        retention.completed,
        retention.failed,
        retention.cancelled,
        retention.completed_count,
        retention.completed_bytes,
        limit,
        now,
    )
    return int(rows[0][0])


async def purge(runner: Runner, which: JobFilter, limit: int, now: datetime | None) -> int:
    """See `Driver.purge`."""
    state = None if which.state is None else NUMBERS[which.state]
    rows = await runner.fetch("purge", limit, now, state, which.queue, which.name)
    return int(rows[0][0])
