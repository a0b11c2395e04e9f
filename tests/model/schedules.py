"""Which tick of a schedule fires (I13), told from the calls and answers alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from tenure.standing import Fired, NewSchedule, ScheduleRecord, Tick

__all__ = ["ScheduleLedger"]


@dataclass(slots=True)
class ScheduleLedger:
    """The schedules that stand, and every instant that ever fired."""

    schedules: dict[str, ScheduleRecord] = field(default_factory=dict[str, ScheduleRecord])
    fired: dict[tuple[str, str, datetime], Tick] = field(
        default_factory=dict[tuple[str, str, datetime], Tick]
    )

    def put(self, new: Sequence[NewSchedule], now: datetime) -> None:
        for one in new:
            known = self.schedules.get(one.id)
            if known is None or known.definition != one.definition:
                self.schedules[one.id] = ScheduleRecord(
                    id=one.id,
                    revision=one.revision,
                    definition=one.definition,
                    created_at=now,
                    last=now,
                    paused=known is not None and known.paused,
                )

    def dropped(self, ids: Sequence[str], answers: Sequence[bool]) -> None:
        assert len(answers) == len(ids)
        for id, answer in zip(ids, answers, strict=True):
            assert answer == (self.schedules.pop(id, None) is not None), "which were there"

    def paused(self, id: str, paused: bool, answer: bool, now: datetime) -> None:
        known = self.schedules.get(id)
        assert answer == (known is not None), "whether it was there"
        if known is not None:
            over = known.paused and not paused
            last = max(known.last, now) if over else known.last
            self.schedules[id] = replace(known, paused=paused, last=last)

    def passed(self, ticks: Sequence[Tick], answers: Sequence[Fired], now: datetime) -> None:
        """I13: each instant passes once, by the first call that knows where its schedule is."""
        assert len(answers) == len(ticks)
        for tick, answer in zip(ticks, answers, strict=True):
            if answer is Fired.FIRED:
                instant = tick.schedule_id, tick.revision, tick.instant
                assert instant not in self.fired, "I13: an instant fired twice"
                self.fired[instant] = tick
            assert answer is self._right(tick, now), "I13: fired, lost, or early"
            if answer is Fired.FIRED:
                known = self.schedules[tick.schedule_id]
                self.schedules[known.id] = replace(known, last=tick.instant)

    def _right(self, tick: Tick, now: datetime) -> Fired:
        known = self.schedules.get(tick.schedule_id)
        if known is None or known.paused:
            return Fired.LOST
        if known.revision != tick.revision or known.last != tick.previous:
            return Fired.LOST
        return Fired.EARLY if tick.instant > now else Fired.FIRED

    def check(self, found: Sequence[ScheduleRecord]) -> None:
        """These are the schedules."""
        assert list(found) == [one for _, one in sorted(self.schedules.items())], "the schedules"
