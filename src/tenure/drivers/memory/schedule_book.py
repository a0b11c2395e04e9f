"""The schedules of one store, and the compare-and-set by which an instant passes once."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from tenure.moved import Restored
from tenure.standing import Fired, NewSchedule, ScheduleRecord, Tick

__all__ = ["ScheduleBook"]


class ScheduleBook:
    """Schedules by id."""

    def __init__(self) -> None:
        self._schedules: dict[str, ScheduleRecord] = {}

    def put(self, new: NewSchedule, now: datetime) -> None:
        known = self._schedules.get(new.id)
        if known is not None and known.definition == new.definition:
            return
        self._schedules[new.id] = ScheduleRecord(
            id=new.id,
            revision=new.revision,
            definition=new.definition,
            created_at=now,
            last=now,
            paused=known is not None and known.paused,
        )

    def judged(self, record: ScheduleRecord) -> Restored:
        """Whether a schedule that comes from another store can be taken in."""
        known = self._schedules.get(record.id)
        if known is None:
            return Restored.STORED
        same = known.definition == record.definition
        return Restored.KNOWN if same else Restored.DUPLICATE

    def restore(self, record: ScheduleRecord) -> None:
        self._schedules[record.id] = record

    def drop(self, schedule_id: str) -> bool:
        return self._schedules.pop(schedule_id, None) is not None

    def pause(self, schedule_id: str, paused: bool, now: datetime) -> bool:
        known = self._schedules.get(schedule_id)
        if known is None:
            return False
        if known.paused and not paused:
            known = replace(known, last=max(known.last, now))  # what fell into the pause is over
        self._schedules[schedule_id] = replace(known, paused=paused)
        return True

    def all(self) -> Sequence[ScheduleRecord]:
        return [record for _, record in sorted(self._schedules.items())]

    def pass_tick(self, tick: Tick, now: datetime) -> Fired:
        """Let the instant pass, where nobody has; the caller then stores the job."""
        known = self._schedules.get(tick.schedule_id)
        if known is None or known.paused:
            return Fired.LOST
        if (known.revision, known.last) != (tick.revision, tick.previous):
            return Fired.LOST
        if tick.instant > now:
            return Fired.EARLY
        self._schedules[known.id] = replace(known, last=tick.instant)
        return Fired.FIRED
