"""Witnesses: variants of the memory driver that each break one thing.

They prove that the kit has teeth; `test_witnesses.py` says which checks must fail on which. Those
of unique keys, of histories and schedules, and of limits have files of their own.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tenure.clock import Clock
from tenure.driver import Capability, Driver, RecordItem
from tenure.drivers.memory import MemoryDriver
from tenure.drivers.memory.key_limits import KeyLimits
from tenure.drivers.memory.schedule_book import ScheduleBook
from tenure.drivers.memory.unique_keys import UniqueKeys
from tenure.outcomes import Completed, Outcome, Released, Retried, Snoozed
from tenure.presence import WorkerInfo
from tenure.states import TERMINAL, State
from tenure.testing.conformance import OpenStore
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Exchanged,
    Held,
    Hold,
    Job,
    JobFilter,
    Kept,
    ManualRetry,
    Move,
    NewJob,
    Page,
    Recorded,
    Retention,
)

_YEARS = timedelta(days=3650)


def opening(build: Callable[[], Driver]) -> OpenStore:
    """A factory of fresh, opened stores from one of unopened drivers."""

    @asynccontextmanager
    async def open_store() -> AsyncGenerator[Driver]:
        store = build()
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    return open_store


class Witness(MemoryDriver):
    """The honest driver, with a few places where a witness can step in."""

    keys: type[UniqueKeys] = UniqueKeys
    key_limits: type[KeyLimits] = KeyLimits
    book: type[ScheduleBook] = ScheduleBook

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock=clock)
        self._keys = self.keys()
        self._limits = self.key_limits()
        self._schedules = self.book()

    def seen(self, hold: Hold, current: Hold) -> Hold:
        """The hold that `record` takes the given one for, the current one being another."""
        return hold

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        """Called when `record` has applied the outcome."""

    def reclaimed(self, hold: Hold) -> None:
        """Called when `reclaim` has ended the hold."""

    def _change(self, job_id: str, **fields: Any) -> None:
        record = self._records.get(job_id)
        if record is not None:
            record.job = replace(record.job, **fields)

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        hold, outcome = item
        record = self._records.get(hold.job_id)
        if record is None:
            return super()._settle(item, now)
        before = record.job
        if record.hold is not None and record.hold != hold:
            hold = self.seen(hold, record.hold)
        answer = super()._settle((hold, outcome), now)
        if answer is Recorded.APPLIED:
            self.applied(before, outcome, now)
        return answer

    async def reclaim(
        self,
        limit: int,
        delays: Sequence[float],
        *,
        only: Sequence[Hold] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Hold]:
        holds = await super().reclaim(limit, delays, only=only, now=now)
        for hold in holds:
            self.reclaimed(hold)
        return holds


# --- holds --------------------------------------------------------------------------------------


class TokenIgnored(Witness):
    """`record` compares the serial alone."""

    def seen(self, hold: Hold, current: Hold) -> Hold:
        return current if hold.serial == current.serial else hold


class SerialIgnored(Witness):
    """`record` compares the token alone."""

    def seen(self, hold: Hold, current: Hold) -> Hold:
        return current if hold.token == current.token else hold


class NotFenced(Witness):
    """`record` asks only whether the job is processing."""

    def seen(self, hold: Hold, current: Hold) -> Hold:
        return current


class ExpiredOutcomeRefused(Witness):
    """`record` fences a hold whose lease ran out, though nobody reclaimed it."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        if any(hold == item[0] for _, hold, _ in self._run_out(now)):
            return Recorded.FENCED
        return super()._settle(item, now)


class RepeatFenced(Witness):
    """`record` does not know the hold it settled last."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        answer = super()._settle(item, now)
        return Recorded.FENCED if answer is Recorded.REPEATED else answer


class RepeatForgottenAtClaim(Witness):
    """A claim forgets the settled hold before the new one is settled."""

    def _take(self, record: Any, request: ClaimRequest, now: datetime) -> Claim:
        record.settled = None
        return super()._take(record, request, now)


class AnyOutcomeRepeats(Witness):
    """`record` answers `REPEATED` for a settled hold whatever the outcome."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        answer = super()._settle(item, now)
        record = self._records.get(item[0].job_id)
        settled = record and record.settled and record.settled[0] == item[0]
        return Recorded.REPEATED if answer is Recorded.FENCED and settled else answer


class ProgressNotFenced(Witness):
    """`progress` is stored under any hold of a job that runs."""

    async def progress(self, hold: Hold, value: bytes, *, now: datetime | None = None) -> Recorded:
        record = self._records.get(hold.job_id)
        current = record.hold if record and record.hold else hold
        return await super().progress(current, value, now=now)


class ClaimInTwoSteps(Witness):
    """`claim` looks first and takes later, and others come in between."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        found = self._due(request.queues[0].name, now or self._clock.now(), None)[: request.limit]
        await asyncio.sleep(0)
        for record in found:
            record.hold = None
        return [self._take(record, request, now or self._clock.now()) for record in found]


# --- leases -------------------------------------------------------------------------------------


class LeaseIgnored(Witness):
    """`reclaim` takes every hold for expired."""

    def _run_out(self, now: datetime, *, ahead: bool = False) -> Any:
        return super()._run_out(now + _YEARS, ahead=ahead)


class OneLeaseForAll(Witness):
    """A claim's lease is 30 s, whatever was asked for."""

    def _take(self, record: Any, request: ClaimRequest, now: datetime) -> Claim:
        return super()._take(record, replace(request, lease=30.0), now)


class ClaimStealsExpired(Witness):
    """`claim` takes jobs whose lease ran out, without a reclaim."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        stolen = [record for _, _, record in self._run_out(now) if record.job.queue == queue]
        for record in stolen:
            record.hold = None
        return stolen + super()._due(queue, now, names)


class LostHoldRevived(Witness):
    """`extend` makes a hold current again that was reclaimed."""

    def _extend(self, hold: Hold, lease: float, now: datetime) -> Kept:
        record = self._records.get(hold.job_id)
        if record and record.hold is None and record.job.state is State.PENDING:
            record.hold = hold
            self._change(hold.job_id, state=State.PROCESSING)
        return super()._extend(hold, lease, now)


class ExpiredHoldNotExtended(Witness):
    """`extend` gives up a hold whose lease ran out, though nobody reclaimed it."""

    def _extend(self, hold: Hold, lease: float, now: datetime) -> Kept:
        if any(hold == other for _, other, _ in self._run_out(now)):
            return Kept.LOST
        return super()._extend(hold, lease, now)


class LeaseNeverShortened(Witness):
    """`extend` moves the end of a lease forward only."""

    def _extend(self, hold: Hold, lease: float, now: datetime) -> Kept:
        record = self._records.get(hold.job_id)
        before = record.until if record else None
        answer = super()._extend(hold, lease, now)
        if record and before and record.until:
            record.until = max(record.until, before)
        return answer


class ReclaimKeepsTheSerial(Witness):
    """`reclaim` leaves the serial as it is."""

    def reclaimed(self, hold: Hold) -> None:
        self._change(hold.job_id, serial=hold.serial)


class ReclaimIgnoresOnly(Witness):
    """`reclaim` ends every expired hold, whichever were named."""

    async def reclaim(
        self, limit: int, delays: Sequence[float], *, only: Any = None, now: Any = None
    ) -> Sequence[Hold]:
        return await super().reclaim(limit, delays, now=now)


class ReclaimTakesOnlyAtItsWord(Witness):
    """`reclaim` ends the holds that were named without a look at their leases."""

    def _run_out(self, now: datetime, *, ahead: bool = False) -> Any:
        late = now + (_YEARS if self._trusting else timedelta())
        return super()._run_out(late, ahead=ahead)

    _trusting = False

    async def reclaim(
        self, limit: int, delays: Sequence[float], *, only: Any = None, now: Any = None
    ) -> Sequence[Hold]:
        self._trusting = only is not None
        try:
            return await super().reclaim(limit, delays, only=only, now=now)
        finally:
            self._trusting = False


class ReclaimGivesTheStartBack(Witness):
    """`reclaim` gives the start back as a release does."""

    def reclaimed(self, hold: Hold) -> None:
        self._change(hold.job_id, attempt=self._records[hold.job_id].job.attempt - 1)


class ReclaimIgnoresItsLimit(Witness):
    """`reclaim` ends every expired hold at once."""

    async def reclaim(
        self, limit: int, delays: Sequence[float], *, only: Any = None, now: Any = None
    ) -> Sequence[Hold]:
        return await super().reclaim(10**9, delays, only=only, now=now)


class ReclaimKnowsOneDelay(Witness):
    """`reclaim` uses the first delay however often the job stalled."""

    async def reclaim(
        self, limit: int, delays: Sequence[float], *, only: Any = None, now: Any = None
    ) -> Sequence[Hold]:
        return await super().reclaim(limit, delays[:1], only=only, now=now)


# --- order --------------------------------------------------------------------------------------


class TiesById(Witness):
    """Jobs of equal priority and due time are ordered by id."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        due = super()._due(queue, now, names)
        return sorted(due, key=lambda r: (-r.job.priority, r.job.run_at, r.job.id))


class PriorityInverted(Witness):
    """Lower priorities go first."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        due = super()._due(queue, now, names)
        return sorted(due, key=lambda r: (r.job.priority, r.job.run_at, r.arrival))


class DueTimeIgnored(Witness):
    """Within a priority only arrival counts."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        due = super()._due(queue, now, names)
        return sorted(due, key=lambda r: (-r.job.priority, r.arrival))


class ScheduledJobsGoLast(Witness):
    """A scheduled job that is due goes behind the jobs that never waited."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        due = super()._due(queue, now, names)
        return sorted(due, key=lambda r: (-r.job.priority, r.job.run_at > r.job.created_at))


class ReleaseLosesThePlace(Witness):
    """A release without a delay makes the job due now."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Released) and outcome.delay is None:
            self._change(before.id, run_at=now)


class QueuesAreCaseless(Witness):
    """Queues whose names differ in case are one."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        queues = sorted({record.job.queue for record in self._records.values()})
        alike = [other for other in queues if other.lower() == queue.lower()]
        return [
            record for other in alike for record in super(Witness, self)._due(other, now, names)
        ]


class DelayIgnored(Witness):
    """A delayed job is due at once."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        return await super().enqueue([replace(job, delay=None) for job in jobs], now=now)


# --- attempts and stalls ------------------------------------------------------------------------


class AttemptCountedTwice(Witness):
    """A claim counts two starts."""

    def _take(self, record: Any, request: ClaimRequest, now: datetime) -> Claim:
        self._change(record.job.id, attempt=record.job.attempt + (record.hold is None))
        return super()._take(record, request, now)


class ReleaseSpendsTheStart(Witness):
    """A release does not give the start back."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Released):
            self._change(before.id, attempt=before.attempt)


class SnoozeSpendsTheStart(Witness):
    """A snooze does not give the start back."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Snoozed):
            self._change(before.id, attempt=before.attempt)


class RetryGivesTheStartBack(Witness):
    """A retry after a failure spends no attempt."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Retried):
            self._change(before.id, attempt=before.attempt - 1)


class StallsNeverReset(Witness):
    """No outcome ends the row of stalls."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        self._change(before.id, stalls=before.stalls)


class ReleaseResetsStalls(Witness):
    """A release ends the row of stalls."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Released):
            self._change(before.id, stalls=0)


# --- repeats ------------------------------------------------------------------------------------


class RepeatedEnqueueOverwrites(Witness):
    """A repeated enqueue stores the job anew."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        for job in jobs:
            self._records.pop(job.id, None)
        return await super().enqueue(jobs, now=now)


class DuplicateTakenForARepeat(Witness):
    """An id that is stored answers `CREATED` whatever the content."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        await super().enqueue([job for job in jobs if job.id not in self._records], now=now)
        return [Enqueued.CREATED] * len(jobs)


class DigestMadeAnew(Witness):
    """The digest that comes with a job is not looked at."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        return await super().enqueue([replace(job, content=None) for job in jobs], now=now)


class DuplicateStoresTheRest(Witness):
    """A batch with a duplicate stores its other jobs."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        one = super().enqueue
        return [answer for job in jobs for answer in await one([job], now=now)]


class DeleteForgetsTheId(Witness):
    """A deleted or pruned id is free at once."""

    def _delete(self, job_id: str, now: datetime) -> Answer:
        answer = super()._delete(job_id, now)
        self._gone.clear()
        return answer


class MoveForgetsTheContent(Witness):
    """A moved job is compared by what it was moved to."""

    def _move(self, item: Move, now: datetime) -> Answer:
        answer = super()._move(item, now)
        if answer is Answer.DONE:
            self._records[item.job_id].content = b"other"
        return answer


class AgainIgnored(Witness):
    """A repeated claim is a claim like any other."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        return await super().claim(replace(request, again=False), now=now)


class AgainClaimsMore(Witness):
    """A repeated claim returns what it holds, and claims up to its limits besides."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        now = now or self._clock.now()
        held = self._held_by(request.token) if request.again else []
        claims = [self._take(record, request, now) for record in held]
        return claims + list(await super().claim(replace(request, again=False), now=now))


class AgainGoesQueueByQueue(Witness):
    """A repeated claim takes new jobs of one queue before it looks for its own in the next."""

    def _candidates(self, request: ClaimRequest, now: datetime) -> Any:
        for queue in request.queues:
            yield from super()._candidates(replace(request, queues=(queue,)), now)


class RetryIgnoresTheSerial(Witness):
    """A manual retry applies whatever happened since."""

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        return super()._retry(ManualRetry(item.job_id), now)


# --- control ------------------------------------------------------------------------------------


class PauseIgnored(Witness):
    """`pause` is shown, and claims go on."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        paused, self._paused = self._paused, set()
        try:
            return super()._due(queue, now, names)
        finally:
            self._paused = paused


class WishToCancelDropped(Witness):
    """`cancel` of a running job stores nothing."""

    def _cancel(self, job_id: str, now: datetime) -> Answer:
        answer = super()._cancel(job_id, now)
        self._change(job_id, cancel_requested=False)
        return answer


class WishToCancelDoesNotStopARetry(Witness):
    """An attempt that was asked to cancel and asks for a retry gets one."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Retried):
            self._change(before.id, state=State.PENDING, finished_at=None)


class WishToCancelBeatsACompletion(Witness):
    """A job that was asked to cancel is cancelled though it completed."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if before.cancel_requested:
            self._change(before.id, state=State.CANCELLED)


class WishToCancelOutlivesTheEnd(Witness):
    """The wish to cancel stays when the job has ended."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        self._change(before.id, cancel_requested=before.cancel_requested)


class WishToCancelOutlivesACancel(Witness):
    """A job that is cancelled while it waits keeps the wish of its reclaimed attempt."""

    def _cancel(self, job_id: str, now: datetime) -> Answer:
        record = self._records.get(job_id)
        wished = record is not None and record.job.cancel_requested
        answer = super()._cancel(job_id, now)
        if answer is Answer.DONE:
            self._change(job_id, cancel_requested=wished)
        return answer


class RunningJobDeleted(Witness):
    """`delete` deletes a running job too."""

    def _delete(self, job_id: str, now: datetime) -> Answer:
        if job_id in self._records:
            self._change(job_id, state=State.CANCELLED)
        return super()._delete(job_id, now)


class RetryKeepsTheAttempt(Witness):
    """A manual retry leaves the attempt as it was."""

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        record = self._records.get(item.job_id)
        attempt = record.job.attempt if record else 0
        answer = super()._retry(item, now)
        self._change(item.job_id, attempt=attempt)
        return answer


class EndedJobMoved(Witness):
    """`move` changes jobs that have ended."""

    def _move(self, item: Move, now: datetime) -> Answer:
        answer = super()._move(item, now)
        if answer is Answer.FINISHED:
            self._change(item.job_id, priority=item.priority or 0)
        return answer


class MoveIgnoresTheSerial(Witness):
    """`move` applies whatever happened since."""

    def _move(self, item: Move, now: datetime) -> Answer:
        return super()._move(replace(item, serial=None), now)


class RunningJobsPurged(Witness):
    """`purge` takes running jobs too."""

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        for job_id, record in self._records.items():
            if record.job.state is State.PROCESSING:
                self._change(job_id, state=State.PENDING)
        return await super().purge(which, limit, now=now)


class LiveJobsPruned(Witness):
    """`prune` takes any old job."""

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        for record in self._records.values():
            if record.job.state not in TERMINAL:
                self._change(record.job.id, state=State.COMPLETED)
        return await super().prune(retention, limit, now=now)


class FreshEndsPruned(Witness):
    """`prune` takes jobs that ended a moment ago."""

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        later = (now or self._clock.now()) + timedelta(minutes=1)
        return await super().prune(retention, limit, now=later)


class OneCountForAllQueues(Witness):
    """`prune` keeps the newest completed jobs of the store, not of each queue."""

    def _beyond(self, retention: Retention, now: datetime) -> Any:
        queues = {key: record.job.queue for key, record in self._records.items()}
        for key in queues:
            self._change(key, queue="all")
        try:
            return list(super()._beyond(retention, now))
        finally:
            for key, queue in queues.items():
                self._change(key, queue=queue)


# --- limits, views, content ---------------------------------------------------------------------


class QueueLimitIgnored(Witness):
    """A claim keeps only its overall limit."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        queues = tuple(replace(queue, limit=request.limit) for queue in request.queues)
        return await super().claim(replace(request, queues=queues), now=now)


class BytesIgnored(Witness):
    """A claim takes as many bytes as there are."""

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        return await super().claim(replace(request, max_bytes=10**12), now=now)


class Naming(Witness):
    """Not broken: the filter by names that the memory driver has and does not name."""

    capabilities = frozenset(Capability)


class NamesIgnored(Naming):
    """A claim takes jobs of any name."""

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        return super()._due(queue, now, None)


class ScheduledCountedAsPending(Witness):
    """`counts` does not look at due times."""

    async def counts(self, *, now: datetime | None = None) -> Counts:
        return await super().counts(now=datetime.max.replace(tzinfo=UTC))


class ExpiredCountedAsPending(Witness):
    """`counts` shows expired jobs as if they had been reclaimed."""

    async def counts(self, *, now: datetime | None = None) -> Counts:
        counts = await super().counts(now=now)
        lost = len(self._run_out(now or self._clock.now()))
        return replace(counts, pending=counts.pending + lost, processing=counts.processing - lost)


class ListedByCreation(Witness):
    """`list` orders by the time of creation, which several jobs may share or a clock confuse."""

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        page = await super().list(which, cursor, limit)
        return replace(page, jobs=tuple(sorted(page.jobs, key=_created, reverse=True)))


class CursorCountsFromTheTop(Witness):
    """A cursor is the number of jobs already shown."""

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        if cursor is not None and not cursor.isdecimal():
            return await super().list(which, cursor, limit)
        shown = int(cursor or 0)
        page = await super().list(which, None, shown + limit)
        more = page.cursor is not None
        return Page(jobs=page.jobs[shown:], cursor=str(shown + limit) if more else None)


class PayloadEncodedAnew(Witness):
    """Payloads that are JSON are read and written again."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        answers = await super().enqueue(jobs, now=now)
        for job in jobs:
            with suppress(ValueError):
                self._change(job.id, payload=json.dumps(json.loads(job.payload)).encode())
        return answers


class EmptyResultTakenForNone(Witness):
    """A result of no bytes is stored as none."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Completed):
            self._change(before.id, result=outcome.result or None)


class ErrorOutlivesACompletion(Witness):
    """A completion leaves the error of an earlier attempt."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Completed):
            self._change(before.id, error=before.error)


class ErrorForgottenByARetry(Witness):
    """The failure is gone while its retry waits."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, Retried):
            self._change(before.id, error=None)


class ExchangeClaimsFirst(Witness):
    """`exchange` claims before it records."""

    async def exchange(
        self, items: Sequence[RecordItem], request: ClaimRequest, *, now: datetime | None = None
    ) -> Exchanged:
        claims = tuple(await self.claim(request, now=now))
        return Exchanged(recorded=tuple(await self.record(items, now=now)), claims=claims)


class ExchangeNeedsFreeSlots(Witness):
    """`exchange` does nothing where nothing can be claimed."""

    async def exchange(
        self, items: Sequence[RecordItem], request: ClaimRequest, *, now: datetime | None = None
    ) -> Exchanged:
        if request.limit == 0:
            return Exchanged(recorded=(Recorded.APPLIED,) * len(items), claims=())
        return await super().exchange(items, request, now=now)


class PausedQueuesAreDue(Witness):
    """`next_due` looks at paused queues too."""

    async def next_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> datetime | None:
        paused, self._paused = self._paused, set()
        try:
            return await super().next_due(queues, now=now)
        finally:
            self._paused = paused


class ReportsOutlastTheirTime(Witness):
    """`report` shows a worker for a minute at least."""

    async def report(self, worker: WorkerInfo, ttl: float) -> None:
        await super().report(worker, max(60.0, ttl))


def _created(job: Job[bytes]) -> datetime:
    return job.created_at
