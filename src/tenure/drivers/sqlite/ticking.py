"""Schedules: kept, and fired. An instant passes once, with its job, in one transaction (I13)."""

from collections.abc import Sequence
from datetime import datetime

from tenure.drivers.sqlite.encoding import micros, moment
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.rows import readable
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.standing import Fired, NewSchedule, ScheduleRecord, Schedules, Tick

__all__ = ["drop_schedules", "fire", "pause_schedule", "put_schedules", "schedules"]

_PUT = statement("schedule_put")
_DROP = statement("schedule_drop")
_PAUSE = statement("schedule_pause")
_RESUME = statement("schedule_resume")
_ALL = statement("schedules_all")
_PASS = statement("tick_pass")
_OPEN = statement("tick_open")


def put_schedules(new: Sequence[NewSchedule], now: datetime | None) -> Operation[None]:
    """See `Driver.put_schedules`."""

    def run(transaction: Transaction) -> None:
        instant = transaction.time(now)
        transaction.executemany(
            _PUT, [(each.id, each.revision, each.definition, instant) for each in new]
        )

    return run


def drop_schedules(ids: Sequence[str]) -> Operation[list[bool]]:
    """See `Driver.drop_schedules`."""

    def run(transaction: Transaction) -> list[bool]:
        return [transaction.execute(_DROP, (each,)).rowcount > 0 for each in ids]

    return run


def pause_schedule(schedule_id: str, paused: bool, now: datetime | None) -> Operation[bool]:
    """See `Driver.pause_schedule`."""

    def run(transaction: Transaction) -> bool:
        if paused:
            return transaction.execute(_PAUSE, (schedule_id,)).rowcount > 0
        return transaction.execute(_RESUME, (schedule_id, transaction.time(now))).rowcount > 0

    return run


def schedules(now: datetime | None) -> Operation[Schedules]:
    """See `Driver.schedules`."""

    def run(transaction: Transaction) -> Schedules:
        rows = transaction.rows(_ALL)
        return Schedules(now=moment(transaction.time(now)), items=[_record(*row) for row in rows])

    return run


def _record(
    schedule_id: str, revision: str, definition: bytes, created_at: int, last: int, paused: int
) -> ScheduleRecord:
    return ScheduleRecord(
        id=schedule_id,
        revision=revision,
        definition=definition,
        created_at=readable(created_at, moment, moment(0)),
        last=readable(last, moment, moment(0)),
        paused=paused != 0,
    )


def fire(ticks: Sequence[Tick], now: datetime | None) -> Operation[list[Fired]]:
    """See `Driver.fire`."""

    def run(transaction: Transaction) -> list[Fired]:
        instant = transaction.time(now)
        return [_fire(transaction, tick, instant, now) for tick in ticks]

    return run


def _fire(transaction: Transaction, tick: Tick, instant: int, now: datetime | None) -> Fired:
    expected = (tick.schedule_id, tick.revision, micros(tick.previous))
    passing = micros(tick.instant)
    if passing > instant:
        (still_open,) = transaction.execute(_OPEN, expected).fetchone()
        return Fired.EARLY if still_open else Fired.LOST
    if not transaction.execute(_PASS, (*expected, passing)).rowcount:
        return Fired.LOST
    if tick.job is not None:
        # Whatever it answers, the instant has passed: the job is stored, or known, or held.
        enqueue([tick.job], now)(transaction)
    return Fired.FIRED
