"""The memory driver's job store: what is enqueued, claimed, recorded and reclaimed.

Written for clarity: a claim looks at every waiting job. One lock makes it safe for the keeper's
thread and for several event loops.
"""

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import inf

from tenure.clock import Clock, SystemClock
from tenure.driver import Driver, RecordItem
from tenure.drivers.memory.hints import Hints
from tenure.drivers.memory.key_limits import KeyLimits
from tenure.drivers.memory.records import STALLED, WAITING, Record, changes_of_holder, stored
from tenure.drivers.memory.schedule_book import ScheduleBook
from tenure.drivers.memory.unique_keys import UniqueKeys
from tenure.history import tried
from tenure.outcomes import Completed, Failed, Retried, outcome_digest, settle
from tenure.presence import WorkerInfo
from tenure.states import TERMINAL, State
from tenure.types import (
    Claim,
    ClaimRequest,
    Enqueued,
    Expired,
    ExpiredHold,
    Held,
    Hold,
    Kept,
    NewJob,
    QueueLimit,
    Recorded,
    content_digest,
)

__all__ = ["JobStore"]


class JobStore(Driver):
    """The state of one memory store, and the half of the contract that workers live on."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._records: dict[str, Record] = {}
        self._gone: dict[str, tuple[bytes, datetime]] = {}
        self._keys = UniqueKeys()
        self._limits = KeyLimits()
        self._schedules = ScheduleBook()
        self._paused: set[str] = set()
        self._workers: dict[str, tuple[WorkerInfo, datetime]] = {}
        self._gone_workers: set[str] = set()  # those whose lifeline is cut
        self._hints = Hints(self._clock)
        self._arrivals: int = 0
        self._ahead: float | None = None  # wall time minus monotonic time, at the last look
        self._set_at: float | None = None  # the monotonic time when the other was seen to be set

    # --- the job store --------------------------------------------------------------------------

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        now = now or self._clock.now()
        with self._lock:
            known = [self._known(job, now) for job in jobs]
            if Enqueued.DUPLICATE in known:
                return [
                    answer or self._held(job, now) or Enqueued.CREATED
                    for job, answer in zip(jobs, known, strict=True)
                ]
            answers = [
                answer or self._store(job, now) for job, answer in zip(jobs, known, strict=True)
            ]
            self._hints.tell()
            return answers

    def _known(self, job: NewJob, now: datetime) -> Enqueued | None:
        """The answer for an id that is stored, or was deleted a moment ago."""
        content = self._content(job.id, now)
        if content is None:
            return None
        return Enqueued.CREATED if content == content_digest(job) else Enqueued.DUPLICATE

    def _content(self, job_id: str, now: datetime) -> bytes | None:
        """The content by which an id is known; None where it is not."""
        if job_id in self._records:
            return self._records[job_id].content
        content, until = self._gone.get(job_id, (b"", now))
        return content if until > now else None

    def _held(self, job: NewJob, now: datetime) -> Held | None:
        holder = None if job.unique is None else self._keys.holder(job.unique.key, now)
        return None if holder is None else Held(holder)

    def _store(self, job: NewJob, now: datetime) -> Enqueued | Held:
        """Store one job of an unknown id, or do to the holder of its key what its mode says."""
        held = self._held(job, now)
        if held is not None:
            holder = self._records.get(held.holder)
            if holder is not None and holder.job.state in WAITING and holder.job.name == job.name:
                changes = changes_of_holder(holder.job, job, now)
                if changes:
                    holder.change(now, **changes)
            return held
        self._arrivals += 1
        self._records[job.id] = Record(
            job=stored(job, now), arrival=self._arrivals, content=content_digest(job)
        )
        if job.unique is not None:
            self._keys.take(job.id, job.unique, now)
        return Enqueued.CREATED

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        now = now or self._clock.now()
        with self._lock:
            claims: list[Claim] = []
            taken = dict.fromkeys((queue.name for queue in request.queues), 0)
            size = 0
            for queue, record in self._candidates(request, now):
                if taken[queue.name] >= queue.limit:
                    continue
                if record.hold is None and self._limits.full(record.job.limits, now):
                    continue
                size += len(record.job.payload)
                if len(claims) >= request.limit or (claims and size > request.max_bytes):
                    break
                claims.append(self._take(record, request, now))
                taken[queue.name] += 1
            return claims

    def _candidates(
        self, request: ClaimRequest, now: datetime
    ) -> Iterable[tuple[QueueLimit, Record]]:
        """What the claim may take, in order: what its token holds already, then what is due."""
        held = self._held_by(request.token) if request.again else []
        for queue in request.queues:
            yield from ((queue, record) for record in held if record.job.queue == queue.name)
        for queue in request.queues:
            yield from ((queue, record) for record in self._due(queue.name, now, request.names))

    def _held_by(self, token: str) -> list[Record]:
        held = [r for r in self._records.values() if r.hold and r.hold.token == token]
        return sorted(held, key=Record.place)

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> list[Record]:
        if queue in self._paused:
            return []
        due = [
            record
            for record in self._records.values()
            if record.job.state is State.PENDING
            and record.job.queue == queue
            and record.job.run_at <= now
            and (names is None or record.job.name in names)
        ]
        return sorted(due, key=Record.place)

    def _take(self, record: Record, request: ClaimRequest, now: datetime) -> Claim:
        if record.hold is None:
            record.change(
                now,
                state=State.PROCESSING,
                serial=record.job.serial + 1,
                attempt=record.job.attempt + 1,
            )
            record.hold = Hold(record.job.id, record.job.serial, request.token)
            record.lease = request.lease
            record.until = now + timedelta(seconds=request.lease)
            record.claimed_at, record.worker = now, request.worker
            self._limits.take(record.job.limits, now)
            if record.job.unique is not None and record.job.unique.until == "started":
                self._keys.free(record.job)
        return Claim(
            job=record.job,
            hold=record.hold,
            attempt=record.job.attempt,
            stalls=record.job.stalls,
            lease=record.lease,
        )

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        now = now or self._clock.now()
        with self._lock:
            return [self._settle(item, now) for item in items]

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        hold, outcome = item
        record = self._records.get(hold.job_id)
        if record is None:
            return Recorded.UNKNOWN
        if record.hold != hold:
            repeated = record.settled == (hold, outcome_digest(outcome))
            return Recorded.REPEATED if repeated else Recorded.FENCED
        job = record.job
        after = settle(
            outcome,
            attempt=job.attempt,
            stalls=job.stalls,
            cancel_requested=job.cancel_requested,
        )
        ended = after.state in TERMINAL
        due = job.run_at if after.delay is None else now + timedelta(seconds=after.delay)
        match outcome:
            case Completed(result=result):
                record.change(now, error=None, result=result)
            case Failed(failure=failure) | Retried(failure=failure):
                record.change(now, error=failure)
            case _:
                pass
        record.change(
            now,
            state=after.state,
            attempt=after.attempt,
            stalls=after.stalls,
            run_at=due,
            finished_at=now if ended else None,
            cancel_requested=False,
        )
        record.settled = (hold, outcome_digest(outcome))
        record.remember(tried(outcome), hold, job.attempt, now)
        self._end_hold(record)
        if ended:
            self._keys.free(record.job)
        self._hints.tell()
        return Recorded.APPLIED

    def _end_hold(self, record: Record) -> None:
        record.hold = None
        self._limits.give_back(record.job.limits)

    async def extend(
        self, holds: Sequence[Hold], lease: float, *, now: datetime | None = None
    ) -> Sequence[Kept]:
        now = now or self._clock.now()
        with self._lock:
            return [self._extend(hold, lease, now) for hold in holds]

    def _extend(self, hold: Hold, lease: float, now: datetime) -> Kept:
        record = self._current(hold)
        if record is None:
            return Kept.LOST
        record.lease = lease
        record.until = now + timedelta(seconds=lease)
        return Kept.CANCEL_REQUESTED if record.job.cancel_requested else Kept.KEPT

    def _current(self, hold: Hold) -> Record | None:
        record = self._records.get(hold.job_id)
        return record if record is not None and record.hold == hold else None

    async def expired(self, limit: int, *, now: datetime | None = None) -> Expired:
        with self._lock:
            steady = None if now is not None else self._steady()
            now = now or self._clock.now()
            holds = tuple(
                ExpiredHold(hold=hold, until=until, lease=record.lease)
                for until, hold, record in self._run_out(now, ahead=True)[:limit]
            )
            return Expired(now=now, holds=holds, steady=steady)

    def _steady(self) -> float:
        """For how long the wall clock has not been set, as far as the looks until now can tell."""
        monotonic = self._clock.monotonic()
        ahead = self._clock.now().timestamp() - monotonic
        if self._ahead is not None and abs(ahead - self._ahead) > 1.0:
            self._set_at = monotonic
        self._ahead = ahead
        return inf if self._set_at is None else monotonic - self._set_at

    def _run_out(
        self, now: datetime, *, ahead: bool = False
    ) -> list[tuple[datetime, Hold, Record]]:
        """With `ahead` also those of which only a clock that was set back shows the end."""
        found = [
            (record.until, record.hold, record)
            for record in self._records.values()
            if record.hold is not None and record.until is not None
            if record.until <= now
            or (ahead and record.until > now + timedelta(seconds=record.lease))
        ]
        return sorted(found, key=lambda entry: (entry[0], entry[2].arrival))

    async def reclaim(
        self,
        limit: int,
        delays: Sequence[float],
        *,
        only: Sequence[Hold] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Hold]:
        now = now or self._clock.now()
        with self._lock:
            found = [
                (hold, record)
                for _, hold, record in self._run_out(now, ahead=only is not None)
                if only is None or hold in only
            ][:limit]
            for hold, record in found:
                job = record.job
                record.remember(STALLED, hold, job.attempt, now)
                record.change(
                    now,
                    state=State.PENDING,
                    serial=job.serial + 1,
                    stalls=job.stalls + 1,
                    run_at=now + timedelta(seconds=delays[min(job.stalls, len(delays) - 1)]),
                )
                self._end_hold(record)
            if found:
                self._hints.tell()
            return [hold for hold, _ in found]

    async def next_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> datetime | None:
        now = now or self._clock.now()
        with self._lock:
            times = [
                self._claimable_at(record, now)
                for record in self._records.values()
                if record.job.state is State.PENDING
                and record.job.queue in queues
                and record.job.queue not in self._paused
            ]
            return min((time for time in times if time is not None and time > now), default=None)

    async def oldest_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[datetime | None]:
        now = now or self._clock.now()
        with self._lock:
            waiting = [r.job for r in self._records.values() if r.job.state is State.PENDING]
            return [
                min((j.run_at for j in waiting if j.queue == q and j.run_at <= now), default=None)
                for q in queues
            ]

    def _claimable_at(self, record: Record, now: datetime) -> datetime | None:
        """When a claim may take the waiting job; None where only an end of a hold helps."""
        job = record.job
        return job.run_at if job.run_at > now else self._limits.free_at(job.limits, now)

    async def progress(self, hold: Hold, value: bytes, *, now: datetime | None = None) -> Recorded:
        now = now or self._clock.now()
        with self._lock:
            record = self._current(hold)
            if record is None:
                return Recorded.FENCED if hold.job_id in self._records else Recorded.UNKNOWN
            record.change(now, progress=value)
            return Recorded.APPLIED
