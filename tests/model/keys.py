"""Who holds a unique key (I8), told from the calls and answers alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from tenure.states import TERMINAL, State
from tenure.types import Held, Job, NewJob, UniqueKey

__all__ = ["KeyLedger", "due", "put_off"]

_WAITING = (State.PENDING, State.BLOCKED)


@dataclass(frozen=True, slots=True)
class _Holding:
    """That a job has a key: until it ends or starts, and not from `until` on."""

    job_id: str
    key: str
    until: datetime | None

    def lasts(self, now: datetime) -> bool:
        return self.until is None or now < self.until


@dataclass(slots=True)
class KeyLedger:
    """The jobs that hold their key, and the marks of throttles, which no job's end takes away."""

    holding: dict[str, _Holding] = field(default_factory=dict[str, _Holding])
    marks: dict[str, _Holding] = field(default_factory=dict[str, _Holding])

    def holder(self, unique: UniqueKey | None, now: datetime) -> Held | None:
        """What a dispatch of the key is answered where somebody has it."""
        if unique is None:
            return None
        all_of_it = [one for one in self.holding.values() if one.key == unique.key]
        all_of_it += [mark for mark in self.marks.values() if mark.key == unique.key]
        found = [one.job_id for one in all_of_it if one.lasts(now)]
        assert len(found) < 2, "I8: two holders of a key"
        return Held(found[0]) if found else None

    def taken(self, job_id: str, unique: UniqueKey | None, now: datetime) -> None:
        """A job was stored, or waits again after its end."""
        if unique is None:
            return
        assert self.holder(unique, now) is None, "I8: a key that was held has another holder"
        until = None if unique.period is None else now + timedelta(seconds=unique.period)
        holding = _Holding(job_id, unique.key, until)
        if unique.mode == "throttle":
            self.marks[unique.key] = holding
        else:
            self.holding[job_id] = holding

    def ends(self, now: datetime) -> list[datetime]:
        """The instants after now at which a key is free by itself."""
        dated = [*self.holding.values(), *self.marks.values()]
        return [one.until for one in dated if one.until is not None and one.lasts(now)]

    def started(self, job: Job[bytes]) -> None:
        """A job was claimed."""
        if job.unique is not None and job.unique.until == "started":
            self.holding.pop(job.id, None)

    def check(self, view: Mapping[str, Job[bytes]]) -> None:
        """Whoever has ended, or is gone, holds its key no more."""
        for job_id in list(self.holding):
            if job_id not in view or view[job_id].state in TERMINAL:
                del self.holding[job_id]

    def check_answers(
        self, found: Mapping[str, Held | None], view: Mapping[str, Job[bytes]], now: datetime
    ) -> None:
        """What the store says of each key is right."""
        for key, held in found.items():
            right = self.holder(UniqueKey(key=key), now)
            mark = self.marks.get(key)
            if held is not None and not (mark is not None and mark.lasts(now)):
                job = view.get(held.holder)
                assert job is not None, "I8: nobody's job holds a key"
                assert job.state not in TERMINAL, "I8: a job that has ended holds a key"
            assert held == right, "I8: who holds a key"


def due(job: NewJob, now: datetime) -> datetime:
    """When a job that is dispatched now is due."""
    return job.at or now + timedelta(seconds=job.delay or 0.0)


def put_off(jobs: dict[str, Job[bytes]], new: NewJob, held: Held, now: datetime) -> None:
    """Do to the holder what the mode of a refused dispatch says."""
    job = jobs.get(held.holder)
    if job is None or job.state not in _WAITING or job.name != new.name or new.unique is None:
        return
    latest = due(new, now)
    if new.unique.max_wait is not None:
        latest = min(latest, job.created_at + timedelta(seconds=new.unique.max_wait))
    match new.unique.mode:
        case "replace":
            jobs[job.id] = replace(job, payload=new.payload, run_at=latest)
        case "debounce":
            jobs[job.id] = replace(job, run_at=max(job.run_at, latest))
        case "keep" | "throttle":
            pass
