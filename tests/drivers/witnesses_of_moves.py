"""Witnesses of dump and restore: variants of the memory driver that each break one thing."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from tenure.drivers.memory.records import Record
from tenure.moved import Dump, Restored, StoredJob
from tenure.states import State
from tenure.types import Held
from tests.drivers.witnesses import Witness


class SerialKeptByAMove(Witness):
    """A job that was processing keeps the serial of its hold."""

    def _restore(self, stored: StoredJob, now: datetime) -> None:
        super()._restore(stored, now)
        self._change(stored.job.id, serial=stored.job.serial - 1)


class HalfABatchRestored(Witness):
    """What comes before a duplicate is stored."""

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        answers = await super().restore(jobs, now=now)
        first = (
            list(jobs)[: list(answers).index(Restored.DUPLICATE)]
            if (Restored.DUPLICATE in answers)
            else []
        )
        if first:
            await super().restore(first, now=now)
        return answers


class RestoredOverWhatIsThere(Witness):
    """A known job is made anew as it was in the file."""

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        answers = await super().restore(jobs, now=now)
        for each, answer in zip(jobs, answers, strict=True):
            if answer is Restored.KNOWN and each.job.id in self._records:
                self._records[each.job.id].job = each.job
        return answers


class HistoryLeftBehind(Witness):
    """A job arrives without its past."""

    def _restore(self, stored: StoredJob, now: datetime) -> None:
        super()._restore(replace(stored, history=()), now)


class KeyNotTaken(Witness):
    """A restored job does not hold its unique key."""

    def _restore(self, stored: StoredJob, now: datetime) -> None:
        super()._restore(replace(stored, key=None), now)


class RunningJobsLeftOut(Witness):
    """A dump has no job that is being processed."""

    async def dump(self, cursor: str | None, limit: int, *, now: datetime | None = None) -> Dump:
        page = await super().dump(cursor, limit, now=now)
        still = [each for each in page.jobs if each.job.state is not State.PROCESSING]
        return replace(page, jobs=tuple(still))


class DatesOfTheMove(Witness):
    """A finished job ends when it arrives."""

    def _restore(self, stored: StoredJob, now: datetime) -> None:
        super()._restore(stored, now)
        record: Record = self._records[stored.job.id]
        if record.job.finished_at is not None:
            self._change(stored.job.id, finished_at=now)
