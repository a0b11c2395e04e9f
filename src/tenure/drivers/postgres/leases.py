"""The operations about the end of leases: extend, look for expired ones, reclaim."""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.postgres.pool import Runner
from tenure.drivers.postgres.rows import nearest
from tenure.types import Expired, ExpiredHold, Hold, Kept

__all__ = ["expired", "extend", "reclaim"]

_ANSWERS = (Kept.KEPT, Kept.LOST, Kept.CANCEL_REQUESTED)


async def extend(
    runner: Runner, holds: Sequence[Hold], lease: float, now: datetime | None
) -> list[Kept]:
    """See `Driver.extend`."""
    answers: dict[Hold, Kept] = {}
    left: list[Hold] = list(dict.fromkeys(holds))
    while left:
        # The statement takes each id once; two holds of one job are a rare mistake of the caller.
        by_job: dict[str, Hold] = {hold.job_id: hold for hold in left}
        batch = list(by_job.values())
        rows = await runner.fetch("extend", *_columns(batch), lease, now)
        numbers: list[int] = rows[0][0]
        answers |= {hold: _ANSWERS[n] for hold, n in zip(batch, numbers, strict=True)}
        left = [hold for hold in left if hold not in answers]
    return [answers[hold] for hold in holds]


async def expired(runner: Runner, limit: int, now: datetime | None) -> Expired:
    """See `Driver.expired`."""
    rows = await runner.fetch("expired", limit, now)
    holds = tuple(
        ExpiredHold(hold=Hold(job_id, serial, token), until=nearest(until), lease=lease)
        for _, job_id, serial, token, until, lease in rows
        if job_id is not None
    )
    return Expired(now=rows[0][0], holds=holds)


async def reclaim(
    runner: Runner,
    limit: int,
    delays: Sequence[float],
    only: Sequence[Hold] | None,
    now: datetime | None,
) -> list[Hold]:
    """See `Driver.reclaim`."""
    columns: tuple[object, ...] = (None, None, None) if only is None else _columns(only)
    rows = await runner.fetch("reclaim", limit, list(delays), *columns, now)
    return [Hold(job_id, serial, token) for job_id, serial, token in rows]


def _columns(holds: Sequence[Hold]) -> tuple[list[str], list[int], list[str]]:
    return (
        [hold.job_id for hold in holds],
        [hold.serial for hold in holds],
        [hold.token for hold in holds],
    )
