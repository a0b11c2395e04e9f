"""A driver each of whose calls is made twice, as if the first answer had been lost (I14).

The second answer is the one that is given, read as a caller reads it who repeats: that an outcome
is `REPEATED` means to it that it was applied. It excuses nothing else.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import TypeVar

from msgspec.structs import replace

from tenure.driver import RecordItem
from tenure.moved import Restored, StoredJob
from tenure.standing import Fired, ScheduleRecord, Tick
from tenure.testing.faults.passing import PassingDriver
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Exchanged,
    Held,
    Hold,
    JobFilter,
    ManualRetry,
    Recorded,
    Retention,
)

__all__ = ["RepeatingDriver"]

T = TypeVar("T")
E = TypeVar("E", bound=Enum | bool | Held)

# For each operation: what a repeat answers where the first call answered otherwise, in a word.
_RECORDED = {Recorded.APPLIED: Recorded.REPEATED}
_CANCELLED = {Answer.DONE: Answer.FINISHED}
_RETRIED = {Answer.DONE: Answer.LIVE}
_DELETED = {Answer.DONE: Answer.UNKNOWN}
_FIRED = {Fired.FIRED: Fired.LOST}
_DROPPED = {True: False}
_RESTORED = {Restored.STORED: Restored.KNOWN}
_STORED: Mapping[Restored | Held, Restored | Held] = {Restored.STORED: Restored.KNOWN}


class RepeatingDriver(PassingDriver):
    """Makes each call that may change something twice, with the same ids and tokens.

    A claim is repeated with `again`. Steps of bounded work (`reclaim`, `purge`, `prune`) answer
    with what both calls did, and are not repeated where the first came to its limit: the repeat
    would rightly take the next step. What only looks, waits, opens or closes, and what takes part
    in a caller's own transaction, is passed on once. An error of the first call is raised as it is.
    """

    async def around(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        if operation in _HARMLESS:
            await call()
        return await call()

    def around_keeper(self, call: Callable[[], T]) -> T:
        call()
        return call()

    # --- the path of a job ----------------------------------------------------------------------

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        await self.inner.claim(request, now=now)
        return await self.inner.claim(replace(request, again=True), now=now)

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        first = await self.inner.record(items, now=now)
        return _read(first, await self.inner.record(items, now=now), _RECORDED)

    async def exchange(
        self, items: Sequence[RecordItem], request: ClaimRequest, *, now: datetime | None = None
    ) -> Exchanged:
        first = await self.inner.exchange(items, request, now=now)
        second = await self.inner.exchange(items, replace(request, again=True), now=now)
        recorded = _read(first.recorded, second.recorded, _RECORDED)
        return replace(second, recorded=tuple(recorded))

    async def reclaim(
        self,
        limit: int,
        delays: Sequence[float],
        *,
        only: Sequence[Hold] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Hold]:
        first = await self.inner.reclaim(limit, delays, only=only, now=now)
        if len(first) >= limit:
            return first
        return [*first, *await self.inner.reclaim(limit, delays, only=only, now=now)]

    # --- control --------------------------------------------------------------------------------

    async def cancel(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        first = await self.inner.cancel(job_ids, now=now)
        return _read(first, await self.inner.cancel(job_ids, now=now), _CANCELLED)

    async def retry(
        self, items: Sequence[ManualRetry], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        first = await self.inner.retry(items, now=now)
        return _read(first, await self.inner.retry(items, now=now), _RETRIED)

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        first = await self.inner.delete(job_ids, now=now)
        return _read(first, await self.inner.delete(job_ids, now=now), _DELETED)

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        first = await self.inner.purge(which, limit, now=now)
        return first if first >= limit else first + await self.inner.purge(which, limit, now=now)

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        first = await self.inner.prune(retention, limit, now=now)
        if first >= limit:
            return first
        return first + await self.inner.prune(retention, limit, now=now)

    # --- limits and schedules -------------------------------------------------------------------

    async def drop_limit(self, key: str) -> bool:
        first = await self.inner.drop_limit(key)
        return _read([first], [await self.inner.drop_limit(key)], _DROPPED)[0]

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[bool]:
        first = await self.inner.drop_schedules(ids)
        return _read(first, await self.inner.drop_schedules(ids), _DROPPED)

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        first = await self.inner.fire(ticks, now=now)
        return _read(first, await self.inner.fire(ticks, now=now), _FIRED)

    # --- moving ---------------------------------------------------------------------------------

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        first = await self.inner.restore(jobs, now=now)
        second = await self.inner.restore(jobs, now=now)
        return _read(first, second, _STORED)

    async def restore_schedules(self, schedules: Sequence[ScheduleRecord]) -> Sequence[Restored]:
        first = await self.inner.restore_schedules(schedules)
        return _read(first, await self.inner.restore_schedules(schedules), _RESTORED)


# What answers the same again, so that the second answer is given as it is.
_HARMLESS = frozenset(
    {
        "enqueue",
        "extend",
        "progress",
        "move",
        "pause",
        "put_limit",
        "put_schedules",
        "pause_schedule",
        "report",
    }
)


def _read(first: Sequence[E], second: Sequence[E], repeats: Mapping[E, E]) -> list[E]:
    """The second answers; where one is what a repeat of the first answers, that first one."""
    return [
        before if repeats.get(before, before) == after else after
        for before, after in zip(first, second, strict=True)
    ]
