"""The operations on schedules: each is kept as it was given, and each instant of it passes once."""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.postgres import enqueue
from tenure.drivers.postgres.pool import Runner
from tenure.drivers.postgres.rows import nearest
from tenure.errors import StoreUnavailable
from tenure.standing import Fired, NewSchedule, ScheduleRecord, Schedules, Tick
from tenure.types import NewJob

__all__ = ["drop", "fire", "look", "pause", "put"]

# Stands in the columns where a tick has no job; nothing is stored without an id.
_NONE = NewJob(id="", name="")


async def put(runner: Runner, schedules: Sequence[NewSchedule], now: datetime | None) -> None:
    """See `Driver.put_schedules`."""
    await runner.fetch(
        "put_schedules",
        [schedule.id for schedule in schedules],
        [schedule.revision for schedule in schedules],
        [schedule.definition for schedule in schedules],
        now,
    )


async def drop(runner: Runner, ids: Sequence[str]) -> list[bool]:
    """See `Driver.drop_schedules`."""
    rows = await runner.fetch("drop_schedules", list(ids))
    return list(rows[0][0] or ())


async def pause(runner: Runner, id: str, paused: bool, now: datetime | None) -> bool:
    """See `Driver.pause_schedule`."""
    return bool(await runner.fetch("pause_schedule", id, paused, now))


async def look(runner: Runner, now: datetime | None) -> Schedules:
    """See `Driver.schedules`."""
    rows = await runner.fetch("schedules", now)
    items = [
        ScheduleRecord(
            id=id,
            revision=revision,
            definition=definition,
            created_at=nearest(created_at),
            last=nearest(last),
            paused=paused,
        )
        for _, id, revision, definition, created_at, last, paused in rows
        if id is not None
    ]
    return Schedules(now=rows[0][0], items=items)


async def fire(runner: Runner, ticks: Sequence[Tick], now: datetime | None) -> list[Fired]:
    """See `Driver.fire`.

    A unique key may be in doubt for as long as somebody's transaction is open. So a schedule whose
    jobs have one is fired by itself, after the others, and waits a moment only: then its ticks are
    `LOST` for now, whoever asks again will see.
    """
    keyed = dict.fromkeys(t.schedule_id for t in ticks if t.job is not None and t.job.unique)
    answers: dict[int, Fired] = {}
    for schedule_id in (None, *keyed):
        places = [
            place
            for place, tick in enumerate(ticks)
            if (tick.schedule_id if tick.schedule_id in keyed else None) == schedule_id
        ]
        try:
            some = await _fire(runner, [ticks[place] for place in places], now)
        except StoreUnavailable as error:
            if error.ambiguous or schedule_id is None:
                raise
            some = [Fired.LOST] * len(places)
        answers |= zip(places, some, strict=True)
    return [answers[place] for place in range(len(ticks))]


async def _fire(runner: Runner, ticks: Sequence[Tick], now: datetime | None) -> list[Fired]:
    if not ticks:
        return []
    jobs = [tick.job or _NONE for tick in ticks]
    _, *columns = enqueue.arguments(jobs)
    rows = await runner.fetch(
        "fire",
        [tick.schedule_id for tick in ticks],
        [tick.revision for tick in ticks],
        [tick.previous for tick in ticks],
        [tick.instant for tick in ticks],
        [tick.job and tick.job.id for tick in ticks],
        *columns,
        *enqueue.unique_arguments(jobs),
        enqueue.limits_argument(jobs),
        now,
    )
    return [Fired(answer) for answer in rows[0][0]]
