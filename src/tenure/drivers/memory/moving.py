"""The memory driver gives out whole jobs, and takes them in."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from tenure.drivers.memory.control import Control
from tenure.drivers.memory.records import Record
from tenure.errors import InvalidConfiguration
from tenure.moved import (
    DUMP_BYTES,
    Dump,
    DumpPlace,
    KeyHold,
    Restored,
    StoredJob,
    at_rest,
    size_of,
)
from tenure.standing import ScheduleRecord
from tenure.types import Held

__all__ = ["Moving"]


class Moving(Control):
    """Dumps, and what is made of them in another store."""

    async def dump(self, cursor: str | None, limit: int, *, now: datetime | None = None) -> Dump:
        now = now or self._clock.now()
        place = DumpPlace(0, self._arrivals) if cursor is None else DumpPlace.read(cursor)
        if place is None:
            raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")
        with self._lock:
            left = sorted(
                (r for r in self._records.values() if place.after < r.arrival <= place.last),
                key=attrgetter("arrival"),
            )
            page = left[:limit]
            while len(page) > 1 and sum(size_of(record.job) for record in page) > DUMP_BYTES:
                page.pop()
            more = len(page) < len(left)
            after = page[-1].arrival if page else place.after
            return Dump(
                jobs=tuple(self._whole(record, now) for record in page),
                cursor=DumpPlace(after, place.last).cursor() if more else None,
            )

    def _whole(self, record: Record, now: datetime) -> StoredJob:
        job = record.job
        return StoredJob(
            job=job,
            content=record.content,
            key=None if job.unique is None else self._keys.hold_of(job.id, job.unique.key, now),
            history=tuple(record.history),
        )

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        now = now or self._clock.now()
        with self._lock:
            taken: dict[str, str] = {}
            answers = [self._judged(each, taken, now) for each in jobs]
            if any(answer not in (Restored.STORED, Restored.KNOWN) for answer in answers):
                return answers
            for each, answer in zip(jobs, answers, strict=True):
                if answer is Restored.STORED:
                    self._restore(at_rest(each), now)
            self._hints.tell()
            return answers

    def _judged(self, stored: StoredJob, taken: dict[str, str], now: datetime) -> Restored | Held:
        """The answer for one job; `taken` has the keys that those before it in the batch take."""
        job = stored.job
        content = self._content(job.id, now)
        if content is not None:
            return Restored.KNOWN if content == stored.content else Restored.DUPLICATE
        if job.unique is not None and _lasts(stored.key, now):
            key = job.unique.key
            holder = self._keys.holder(key, now) or taken.get(key)
            if holder is not None:
                return Held(holder)
            taken[key] = job.id
        return Restored.STORED

    def _restore(self, stored: StoredJob, now: datetime) -> None:
        job = stored.job
        self._arrivals += 1
        self._records[job.id] = Record(
            job=job, arrival=self._arrivals, content=stored.content, history=list(stored.history)
        )
        if job.unique is not None and stored.key is not None and _lasts(stored.key, now):
            self._keys.put(job.id, job.unique, stored.key.until)

    async def restore_schedules(self, schedules: Sequence[ScheduleRecord]) -> Sequence[Restored]:
        with self._lock:
            answers = [self._schedules.judged(each) for each in schedules]
            if Restored.DUPLICATE not in answers:
                for each, answer in zip(schedules, answers, strict=True):
                    if answer is Restored.STORED:
                        self._schedules.restore(each)
            return answers


def _lasts(key: KeyHold | None, now: datetime) -> bool:
    return key is not None and (key.until is None or key.until > now)
