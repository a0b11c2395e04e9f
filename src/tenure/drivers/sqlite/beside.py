"""The part of the SQLite driver beside jobs on their path: limits, and whole jobs that move."""

from collections.abc import Sequence
from datetime import datetime

from tenure.driver import Driver
from tenure.drivers.sqlite import limits, moving
from tenure.drivers.sqlite.engine import Engine
from tenure.moved import Dump, Restored, StoredJob
from tenure.standing import Limit, ScheduleRecord
from tenure.types import Held

__all__ = ["Beside"]


class Beside(Driver):
    """Says which operation goes where, as the driver does for the others."""

    _engine: Engine

    # --- limits ---------------------------------------------------------------------------------

    async def put_limit(self, limit: Limit) -> None:
        await self._engine.write(limits.put_limit(limit))

    async def drop_limit(self, key: str) -> bool:
        return await self._engine.write(limits.drop_limit(key))

    async def limits(self) -> Sequence[Limit]:
        return await self._engine.read(limits.limits())

    # --- moving ---------------------------------------------------------------------------------

    async def dump(self, cursor: str | None, limit: int, *, now: datetime | None = None) -> Dump:
        return await self._engine.read(moving.dump(cursor, limit, now))

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        return await self._engine.write(moving.restore(jobs, now))

    async def restore_schedules(self, schedules: Sequence[ScheduleRecord]) -> Sequence[Restored]:
        return await self._engine.write(moving.restore_schedules(schedules))
