"""Witnesses of unique keys: variants of the memory driver that each break one thing of I8."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tenure.driver import RecordItem
from tenure.drivers.memory.records import changes_of_holder
from tenure.drivers.memory.unique_keys import UniqueKeys
from tenure.outcomes import Failed, Outcome
from tenure.states import TERMINAL, State
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Enqueued,
    Held,
    Hold,
    Job,
    ManualRetry,
    NewJob,
    Recorded,
    Retention,
    UniqueKey,
    content_digest,
)
from tests.drivers.witnesses import Witness

_TICK = timedelta(microseconds=1)


# --- who holds a key ----------------------------------------------------------------------------


class KeyIgnored(Witness):
    """A key refuses nothing."""

    def _held(self, job: NewJob, now: datetime) -> Held | None:
        return None


class KeyOfEachQueue(Witness):
    """A key is another in each queue."""

    def _store(self, job: NewJob, now: datetime) -> Enqueued | Held:
        if job.unique is not None:
            unique = replace(job.unique, key=f"{job.queue}/{job.unique.key}")
            job = replace(job, unique=unique)
        return super()._store(job, now)


class KeysAreCaseless(Witness):
    """Keys that differ in case are one."""

    def _store(self, job: NewJob, now: datetime) -> Enqueued | Held:
        if job.unique is not None:
            job = replace(job, unique=replace(job.unique, key=job.unique.key.lower()))
        return super()._store(job, now)


class HeldKeyRefusesTheBatch(Witness):
    """With one held key nothing of a batch is stored."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        at = now or self._clock.now()
        held = [self._held(job, at) for job in jobs]
        return [h or Enqueued.CREATED for h in held] if any(held) else await self._all(jobs, at)

    async def _all(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[Enqueued | Held]:
        return await super().enqueue(jobs, now=now)


class KeysOfABatchUnseen(Witness):
    """The keys of a batch are judged before any of its jobs is stored."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        before = dict(self._keys._held)  # pyright: ignore[reportPrivateUsage]
        after: dict[str, Any] = {}
        answers: list[Enqueued | Held] = []
        for job in jobs:
            self._keys._held = dict(before)  # pyright: ignore[reportPrivateUsage]
            answers += await super().enqueue([job], now=now)
            after |= self._keys._held  # pyright: ignore[reportPrivateUsage]
        self._keys._held = after  # pyright: ignore[reportPrivateUsage]
        return answers


class DispatchInTwoSteps(Witness):
    """`enqueue` looks for the holder first and stores later, and others come in between."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        at = now or self._clock.now()
        held = [self._held(job, at) for job in jobs]
        await asyncio.sleep(0)
        if any(held):
            return await super().enqueue(jobs, now=at)
        await super().enqueue([replace(job, unique=None) for job in jobs], now=at)
        for job in jobs:
            if job.unique is not None:
                self._keys.take(job.id, job.unique, at)
        return [Enqueued.CREATED] * len(jobs)


class KeyBeforeTheId(Witness):
    """A held key refuses a known id."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        held = [self._held(job, now or self._clock.now()) for job in jobs]
        answers = await super().enqueue(jobs, now=now)
        return [h or a for h, a in zip(held, answers, strict=True)]


class DuplicateReplacesTheHolder(Witness):
    """A dispatch does to the holder what its mode says, though its batch is refused."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        at = now or self._clock.now()
        answers = await super().enqueue(jobs, now=at)
        if Enqueued.DUPLICATE in answers:
            for job, answer in zip(jobs, answers, strict=True):
                if isinstance(answer, Held):
                    self._store(job, at)
        return answers


class KeyNotShown(Witness):
    """The stored job does not say what its key was."""

    def _store(self, job: NewJob, now: datetime) -> Enqueued | Held:
        answer = super()._store(job, now)
        if job.unique is not None and answer is Enqueued.CREATED:
            self._change(job.id, unique=UniqueKey(key=job.unique.key))
        return answer


# --- from when on nobody holds it ---------------------------------------------------------------


class KeyFreedAtTheClaim(Witness):
    """A key is free when its job is first claimed, whatever was asked for."""

    def _take(self, record: Any, request: ClaimRequest, now: datetime) -> Claim:
        self._keys.free(record.job)
        return super()._take(record, request, now)


class KeyFreedByAnyOutcome(Witness):
    """A key is free when the attempt has ended, though the job waits for another."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        self._keys.free(before)


class KeyFreedByAReclaim(Witness):
    """A reclaim frees the key."""

    def reclaimed(self, hold: Hold) -> None:
        self._keys.free(self._records[hold.job_id].job)


class _KeyRemains(Witness):
    """Takes the key of a job again that it has just lost."""

    def _remain(self, job: Job[bytes] | None, now: datetime) -> None:
        if job is None or job.unique is None:
            return
        if self._keys.holder(job.unique.key, now) is None:
            self._keys.take(job.id, job.unique, now)


class KeyOutlivesACancel(_KeyRemains):
    """A waiting job that is cancelled keeps its key."""

    def _cancel(self, job_id: str, now: datetime) -> Answer:
        answer = super()._cancel(job_id, now)
        if answer is Answer.DONE:
            self._remain(self._records[job_id].job, now)
        return answer


class KeyOutlivesADelete(_KeyRemains):
    """A job that is deleted or purged leaves its key held by nobody."""

    def _delete(self, job_id: str, now: datetime) -> Answer:
        record = self._records.get(job_id)
        answer = super()._delete(job_id, now)
        if answer is Answer.DONE and record is not None and record.job.state not in TERMINAL:
            self._remain(record.job, now)
        return answer


class KeyOutlivesAFailure(_KeyRemains):
    """A failed job keeps its key."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Failed):
            self._remain(before, now)


class KeyOutlivesAWish(_KeyRemains):
    """A job that a wish turned into cancelled keeps its key."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if before.cancel_requested:
            self._remain(before, now)


class KeyOutlivesItsStart(Witness):
    """A key is held until the end of its job, though it was to be until the start."""

    def _store(self, job: NewJob, now: datetime) -> Enqueued | Held:
        if job.unique is not None:
            job = replace(job, unique=replace(job.unique, until="done"))
        return super()._store(job, now)


class KeyTakenAgainByARetry(Witness):
    """A job that held its key until its start takes it again when it waits again."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        answer = super()._settle(item, now)
        self._retake(item[0], now)
        return answer

    def reclaimed(self, hold: Hold) -> None:
        self._retake(hold, self._records[hold.job_id].job.updated_at)

    def _retake(self, hold: Hold, now: datetime) -> None:
        record = self._records.get(hold.job_id)
        if record is not None and record.job.state is State.PENDING and record.job.unique:
            self._keys.take(record.job.id, record.job.unique, now)


class _PeriodIgnored(UniqueKeys):
    def take(self, job_id: str, unique: UniqueKey, now: datetime) -> None:
        mode = "keep" if unique.mode == "throttle" else unique.mode
        super().take(job_id, replace(unique, period=None, mode=mode), now)


class KeyOutlivesItsPeriod(Witness):
    """The period of a key is not looked at."""

    keys = _PeriodIgnored


class _PeriodInclusive(UniqueKeys):
    def holder(self, key: str, now: datetime) -> str | None:
        return super().holder(key, now - _TICK)


class PeriodInclusive(Witness):
    """A key is held in the last instant of its period."""

    keys = _PeriodInclusive


class _AllThrottle(UniqueKeys):
    def take(self, job_id: str, unique: UniqueKey, now: datetime) -> None:
        mode = unique.mode if unique.period is None else "throttle"
        super().take(job_id, replace(unique, mode=mode), now)


class PeriodOutlivesTheJob(Witness):
    """A key with a period is held for all of it."""

    keys = _AllThrottle


class _NoOwner(UniqueKeys):
    def free(self, job: Job[bytes]) -> None:
        held = None if job.unique is None else self._held.get(job.unique.key)
        if job.unique is not None and held is not None and not held.throttle:
            del self._held[job.unique.key]


class FormerHolderFreesTheKey(Witness):
    """Whatever ends frees the key that it once held, whoever holds it now."""

    keys = _NoOwner


class LateOutcomeFreesTheKey(Witness):
    """An outcome frees the key that its job once held, though it was not applied."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        answer = super()._settle(item, now)
        record = self._records.get(item[0].job_id)
        unique = record.job.unique if record else None
        if answer is not Recorded.APPLIED and unique is not None:
            self._keys._held.pop(unique.key, None)  # pyright: ignore[reportPrivateUsage]
        return answer


# --- manual retries -----------------------------------------------------------------------------


class RetryIgnoresTheHolder(Witness):
    """A manual retry takes the key from whoever holds it."""

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        held, self._keys._held = self._keys._held, {}  # pyright: ignore[reportPrivateUsage]
        answer = super()._retry(item, now)
        self._keys._held = held | self._keys._held  # pyright: ignore[reportPrivateUsage]
        return answer


class RetryWithoutItsKey(Witness):
    """A retried job does not hold its key."""

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        held = dict(self._keys._held)  # pyright: ignore[reportPrivateUsage]
        answer = super()._retry(item, now)
        self._keys._held = held  # pyright: ignore[reportPrivateUsage]
        return answer


class RetryAsksTheThrottle(Witness):
    """A manual retry is refused by its own throttle."""

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        record = self._records.get(item.job_id)
        unique = record.job.unique if record else None
        if unique is not None and unique.mode == "throttle" and self._keys.holder(unique.key, now):
            return Answer.HELD
        return super()._retry(item, now)


# --- throttle, replace, debounce ----------------------------------------------------------------


class _NoThrottle(UniqueKeys):
    def take(self, job_id: str, unique: UniqueKey, now: datetime) -> None:
        mode = "keep" if unique.mode == "throttle" else unique.mode
        super().take(job_id, replace(unique, mode=mode), now)


class ThrottleEndsWithTheJob(Witness):
    """A throttle is a key like any other."""

    keys = _NoThrottle


class _Forgetful(UniqueKeys):
    def forget(self, now: datetime) -> None:
        self._held = {key: held for key, held in self._held.items() if not held.throttle}


class ThrottlePruned(Witness):
    """A prune drops a throttle before its time."""

    keys = _Forgetful


class _Refusal(Witness):
    """What a refused dispatch does, in one place."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        return changes_of_holder(holder, new, now)

    def may_change(self, holder: Job[bytes], new: NewJob) -> bool:
        return holder.state is State.PENDING and holder.name == new.name

    def _store(self, job: NewJob, now: datetime) -> Enqueued | Held:
        held = self._held(job, now)
        holder = self._records.get(held.holder) if held else None
        if held is None or holder is None:
            return super()._store(job, now)
        if self.may_change(holder.job, job):
            self._change(holder.job.id, **self.changes(holder.job, job, now))
        return held


class ProcessingHolderReplaced(_Refusal):
    """A holder is replaced while it runs."""

    def may_change(self, holder: Job[bytes], new: NewJob) -> bool:
        return holder.name == new.name


class HolderOfAnotherNameReplaced(_Refusal):
    """A holder is replaced by a job of another name."""

    def may_change(self, holder: Job[bytes], new: NewJob) -> bool:
        return holder.state is State.PENDING


class ReplaceChangesMore(_Refusal):
    """A replacing dispatch changes the priority too."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        return super().changes(holder, new, now) | {"priority": new.priority}


class ReplaceKeepsTheDueTime(_Refusal):
    """A replacing dispatch changes the payload alone."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        return super().changes(holder, new, now) | {"run_at": holder.run_at}


class ReplaceForgetsTheContent(_Refusal):
    """A replaced job is known by the content that replaced it."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        changes = super().changes(holder, new, now)
        if "payload" in changes:
            as_replaced = replace(new, id=holder.id, unique=holder.unique)
            self._records[holder.id].content = content_digest(as_replaced)
        return changes


class ModeOfTheHolderCounts(_Refusal):
    """A refused dispatch does what the holder's mode says."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        return super().changes(holder, replace(new, unique=holder.unique), now)


class DebounceMovesEarlier(_Refusal):
    """A debouncing dispatch moves the due time to its own, also where that is earlier."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        early = replace(holder, run_at=holder.created_at - timedelta(days=1))
        return super().changes(early, new, now)


class DebounceReplaces(_Refusal):
    """A debouncing dispatch replaces the payload."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        return super().changes(holder, new, now) | {"payload": new.payload}


class LongestWaitIgnored(_Refusal):
    """A holder is put off again and again."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        if new.unique is not None:
            new = replace(new, unique=replace(new.unique, max_wait=None))
        return super().changes(holder, new, now)


class LongestWaitCountedFromNow(_Refusal):
    """The longest wait begins anew with each dispatch."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        return super().changes(replace(holder, created_at=now), new, now)


class RefusedDispatchTouchesTheHolder(_Refusal):
    """A dispatch that leaves the holder as it is has changed it all the same."""

    def changes(self, holder: Job[bytes], new: NewJob, now: datetime) -> dict[str, Any]:
        return {"updated_at": now} | super().changes(holder, new, now)


class PruneTakesTheKey(Witness):
    """A prune that deletes anything drops all keys."""

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        number = await super().prune(retention, limit, now=now)
        if number:
            self._keys = self.keys()
        return number
