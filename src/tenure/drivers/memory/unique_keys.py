"""Which unique key is held by which job, and until when: never without a job, or an end."""

from datetime import datetime, timedelta

from msgspec import Struct

from tenure.moved import KeyHold
from tenure.types import Job, UniqueKey

__all__ = ["UniqueKeys"]


class _Held(Struct, frozen=True):
    job_id: str
    until: datetime | None
    throttle: bool  # a mark with a date of its own, whatever becomes of the job


class UniqueKeys:
    """The held keys of one store."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def holder(self, key: str, now: datetime) -> str | None:
        """The id of the job that holds the key."""
        held = self._held.get(key)
        if held is None or (held.until is not None and held.until <= now):
            return None
        return held.job_id

    def take(self, job_id: str, unique: UniqueKey, now: datetime) -> None:
        """Let the job hold the key from now on, in the place of whoever did."""
        until = None if unique.period is None else now + timedelta(seconds=unique.period)
        self.put(job_id, unique, until)

    def put(self, job_id: str, unique: UniqueKey, until: datetime | None) -> None:
        """The same with an end that is given; None: as long as the job keeps it."""
        self._held[unique.key] = _Held(job_id, until, unique.mode == "throttle")

    def hold_of(self, job_id: str, key: str, now: datetime) -> KeyHold | None:
        """The hold of this job on the key; None where it has none."""
        if self.holder(key, now) != job_id:
            return None
        return KeyHold(until=self._held[key].until)

    def free(self, job: Job[bytes]) -> None:
        """The job has ended, or started where that is the end of its hold."""
        if job.unique is None:
            return
        held = self._held.get(job.unique.key)
        if held is not None and held.job_id == job.id and not held.throttle:
            del self._held[job.unique.key]

    def forget(self, now: datetime) -> None:
        """Drop what is held by nobody any more."""
        self._held = {
            key: held for key, held in self._held.items() if held.until is None or held.until > now
        }
