"""Witnesses of limits: variants of the memory driver that each break one thing of them."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from tenure.driver import RecordItem
from tenure.drivers.memory.key_limits import KeyLimits
from tenure.outcomes import Failed, Outcome
from tenure.standing import Limit, governing
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Enqueued,
    Held,
    Hold,
    Job,
    NewJob,
    Recorded,
)
from tests.drivers.witnesses import Witness

_SECOND = timedelta(seconds=1)
_TICK = timedelta(microseconds=1)


# --- how many at once ---------------------------------------------------------------------------


class _NeverFull(KeyLimits):
    def full(self, keys: Iterable[str], now: datetime) -> bool:
        return False


class LimitIgnored(Witness):
    """No key is ever full."""

    key_limits = _NeverFull


class LimitOfEachClaim(Witness):
    """A limit counts what its own claim took, and nothing else."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        self._limits = LimitOfEachClaim._of(self._limits)
        return await super().claim(request, now=now)

    @staticmethod
    def _of(before: KeyLimits) -> KeyLimits:
        limits = KeyLimits()
        for limit in before.all():
            limits.put(limit)
        return limits


class LimitOfEachQueue(Witness):
    """A key is another in each queue."""

    async def put_limit(self, limit: Limit) -> None:
        await super().put_limit(replace(limit, key=f"{limit.key}@*"))

    def _store(self, job: NewJob, now: datetime) -> Enqueued | Held:
        keys = tuple(f"{key}@{job.queue}" for key in job.limits)
        return super()._store(replace(job, limits=keys), now)


class _Seen(KeyLimits):
    """Judges by what was seen at one moment."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.own: Counter[str] = Counter()

    def look(self) -> Counter[str]:
        return Counter(self._holds)

    def take(self, keys: Iterable[str], now: datetime) -> None:
        keys = list(keys)
        self.own.update(keys)
        super().take(keys, now)

    def _crowded(self, key: str) -> bool:
        limit = governing(key, self._limits.values())
        if limit is None or limit.concurrent is None:
            return False
        return self.seen[key] + self.own[key] >= limit.concurrent


class _SeenOnce(_Seen):
    def _crowded(self, key: str) -> bool:
        self.own.clear()
        return super()._crowded(key)


class OneClaimTakesMore(Witness):
    """A claim does not count what it has taken itself."""

    key_limits = _SeenOnce

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        assert isinstance(self._limits, _Seen)
        self._limits.seen = self._limits.look()
        return await super().claim(request, now=now)


class LimitInTwoSteps(Witness):
    """A claim counts the holds first and takes later, and others come in between."""

    key_limits = _Seen

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        assert isinstance(self._limits, _Seen)
        seen = self._limits.look()
        await asyncio.sleep(0)
        self._limits.seen, self._limits.own = seen, Counter()
        return await super().claim(request, now=now)


class _AnyRoom(KeyLimits):
    def full(self, keys: Iterable[str], now: datetime) -> bool:
        keys = list(keys)
        return bool(keys) and all(super(_AnyRoom, self).full([key], now) for key in keys)


class OneKeyWithRoomSuffices(Witness):
    """A job is passed over only when all its keys are full."""

    key_limits = _AnyRoom


class _FirstKey(KeyLimits):
    def full(self, keys: Iterable[str], now: datetime) -> bool:
        return super().full(list(keys)[:1], now)


class OnlyTheFirstKeyCounts(Witness):
    """A job is judged by the first of its keys."""

    key_limits = _FirstKey


class _Stuck(KeyLimits):
    stuck = False

    def full(self, keys: Iterable[str], now: datetime) -> bool:
        self.stuck = self.stuck or super().full(keys, now)
        return self.stuck


class FullKeyEndsTheClaim(Witness):
    """A claim ends at the first job that it must pass over."""

    key_limits = _Stuck

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        assert isinstance(self._limits, _Stuck)
        self._limits.stuck = False
        return await super().claim(request, now=now)


class PassedOverJobsAreCounted(Witness):
    """A claim looks at no more jobs than it may take."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        at = now or self._clock.now()
        due = [record for queue in request.queues for record in self._due(queue.name, at, None)]
        passed = sum(self._limits.full(record.job.limits, at) for record in due)
        return await super().claim(replace(request, limit=request.limit - passed), now=now)


class AgainCountsTwice(Witness):
    """A repeated claim counts the holds that it returns once more."""

    def _take(self, record: Any, request: ClaimRequest, now: datetime) -> Claim:
        if record.hold is not None:
            self._limits.take(record.job.limits, now)
        return super()._take(record, request, now)


class AgainIgnoresTheLimit(Witness):
    """A repeated claim takes new jobs whose key is full."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        if not request.again:
            return await super().claim(request, now=now)
        limits, self._limits = self._limits, KeyLimits()
        try:
            return await super().claim(request, now=now)
        finally:
            self._limits = limits


# --- what gives a place back --------------------------------------------------------------------


class ReclaimKeepsThePlace(Witness):
    """What a reclaim ends still counts."""

    def reclaimed(self, hold: Hold) -> None:
        job = self._records[hold.job_id].job
        self._limits.take(job.limits, job.updated_at)


class FailureKeepsThePlace(Witness):
    """A failed job still counts."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Failed):
            self._limits.take(before.limits, now)


class PlaceGivenBackTwice(Witness):
    """An outcome gives a place back though it was not applied."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        answer = super()._settle(item, now)
        record = self._records.get(item[0].job_id)
        if record is not None and answer is not Recorded.APPLIED:
            self._limits.give_back(record.job.limits)
        return answer


class WishGivesThePlaceBack(Witness):
    """A running job that is asked to cancel counts no more."""

    def _cancel(self, job_id: str, now: datetime) -> Answer:
        answer = super()._cancel(job_id, now)
        if answer is Answer.REQUESTED:
            self._limits.give_back(self._records[job_id].job.limits)
        return answer


class _NoHolds(KeyLimits):
    def forget(self, now: datetime) -> None:
        self._holds.clear()


class PruneForgetsHolds(Witness):
    """A prune drops what current holds count for."""

    key_limits = _NoHolds


# --- which limit governs a key ------------------------------------------------------------------


class _Shared(KeyLimits):
    def _crowded(self, key: str) -> bool:
        limit = governing(key, self._limits.values())
        if limit is None or limit.concurrent is None:
            return False
        alike = [k for k in self._holds if governing(k, self._limits.values()) is limit]
        return sum(self._holds[k] for k in alike) >= limit.concurrent


class BeginningSharesOneCount(Witness):
    """A limit on a beginning is one for all its keys together."""

    key_limits = _Shared


class _Governed(KeyLimits):
    """Another reading of which limit governs a key."""

    def governs(self, key: str) -> Limit | None:
        raise NotImplementedError

    def _crowded(self, key: str) -> bool:
        limit = self.governs(key)
        if limit is None or limit.concurrent is None:
            return False
        return self._holds[key] >= limit.concurrent


class _BeginningFirst(_Governed):
    def governs(self, key: str) -> Limit | None:
        beginnings = [limit for name, limit in self._limits.items() if name.endswith("*")]
        return governing(key, beginnings) or governing(key, self._limits.values())


class BeginningBeforeTheKey(Witness):
    """A limit on a beginning goes before one on the key itself."""

    key_limits = _BeginningFirst


class _Shortest(_Governed):
    def governs(self, key: str) -> Limit | None:
        found = [limit for limit in self._limits.values() if governing(key, [limit])]
        exact = [limit for limit in found if limit.key == key]
        return min(exact or found, key=lambda limit: len(limit.key), default=None)


class ShortestBeginningGoverns(Witness):
    """Of several beginnings the shortest governs."""

    key_limits = _Shortest


class _Patterns(_Governed):
    def governs(self, key: str) -> Limit | None:
        exact = self._limits.get(key)
        found = [limit for name, limit in self._limits.items() if fnmatchcase(key, name)]
        return exact or max(found, key=lambda limit: len(limit.key), default=None)


class LimitsArePatterns(Witness):
    """The key of a limit is a pattern of the shell."""

    key_limits = _Patterns


class _Merging(KeyLimits):
    def put(self, limit: Limit) -> None:
        known = self._limits.get(limit.key)
        if known is not None and limit.per_second is None:
            limit = replace(limit, per_second=known.per_second)
        super().put(limit)


class LimitPutAgainKeepsABound(Witness):
    """A limit that is put again keeps the bounds that it was not given."""

    key_limits = _Merging


class LimitsInTheOrderOfArrival(Witness):
    """`limits` does not sort."""

    async def limits(self) -> Sequence[Limit]:
        return list(self._limits._limits.values())  # pyright: ignore[reportPrivateUsage]


class KeysNotShown(Witness):
    """`get` does not say which keys a job names."""

    async def get(self, job_id: str) -> Job[bytes] | None:
        job = await super().get(job_id)
        return job and replace(job, limits=())


class _GovernedOnly(KeyLimits):
    def _known(self, keys: Iterable[str]) -> list[str]:
        return [key for key in keys if governing(key, self._limits.values()) is not None]

    def take(self, keys: Iterable[str], now: datetime) -> None:
        super().take(self._known(keys), now)

    def give_back(self, keys: Iterable[str]) -> None:
        super().give_back(key for key in self._known(keys) if self._holds[key] > 0)


class HoldsBeforeTheLimitForgotten(Witness):
    """Only the holds of keys are counted that a limit governs when they are made."""

    key_limits = _GovernedOnly


class _FirstPut(KeyLimits):
    def put(self, limit: Limit) -> None:
        self._limits.setdefault(limit.key, limit)


class LimitNeverChanges(Witness):
    """The first limit on a key stays."""

    key_limits = _FirstPut


class _NoDrop(KeyLimits):
    def drop(self, key: str) -> bool:
        return key in self._limits


class DroppedLimitStays(Witness):
    """A dropped limit is kept to all the same."""

    key_limits = _NoDrop
