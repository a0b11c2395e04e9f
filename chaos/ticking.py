"""I13: each tick of a schedule has one job, and none is missing. Part of the checker."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from chaos.facts import Facts
from chaos.load import ALL, SCHEDULES
from chaos.violation import Violation

__all__ = ["ticks"]

SECOND = timedelta(seconds=1)
MISSED = 60.0  # seconds after which a tick counts as missed, if nobody has looked
KEPT = 1000.0  # that many of the newest are made up for by a schedule that makes up for all


def ticks(known: Facts) -> Iterator[Violation]:
    """No outage of a run is as long as the minute after which a tick counts as missed.

    A clock that is set forward makes ticks late; the schedule says which may then be missing.
    """
    for schedule_id in SCHEDULES:
        made = [job for job in known.stored.values() if job.headers.get("schedule") == schedule_id]
        found = Counter(datetime.fromisoformat(job.headers["tick"]) for job in made)
        for tick, number in found.items():
            if number > 1:
                yield Violation("tick twice", schedule_id, f"{tick}, {number} jobs")
        if not found:
            continue
        tick, last = min(found), max(found)
        while tick < last:
            if tick not in found and not _jumped_over(known, schedule_id, tick.timestamp()):
                yield Violation("tick lost", schedule_id, f"{tick}")
            tick += SECOND


def _jumped_over(known: Facts, schedule_id: str, tick: float) -> bool:
    """Whether it fell due when the clock was set, and was then older than what is made up for."""
    kept = KEPT if schedule_id == ALL else MISSED
    return any(
        shift.before - MISSED < tick <= shift.after + MISSED - kept
        for shift in known.shifts
        if shift.after - shift.before > kept - MISSED / 2
    )
