"""The memory driver: the shortest correct reading of the contract, and the reference for others.

Everything is in this process and gone with it. Written for clarity: a claim looks at every waiting
job. One lock makes it safe for the keeper's thread and for several event loops. It must never do
what a store with a disk could not.
"""

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

from tenure.clock import Clock, SystemClock
from tenure.driver import Capability, Driver, RecordItem
from tenure.drivers.memory.hints import Hints
from tenure.drivers.memory.records import Record, count, end, matches, stored
from tenure.errors import InvalidConfiguration
from tenure.outcomes import Completed, Failed, Retried, outcome_digest, settle
from tenure.states import TERMINAL, State
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Expired,
    ExpiredHold,
    Hold,
    Job,
    JobFilter,
    Kept,
    ManualRetry,
    Move,
    NewJob,
    Page,
    QueueLimit,
    Recorded,
    Retention,
    WorkerInfo,
    content_digest,
)

__all__ = ["MemoryDriver"]

_ID_KNOWN = timedelta(minutes=1)
_WAITING = frozenset({State.PENDING, State.BLOCKED})


class MemoryDriver(Driver):
    """A store in memory, each instance its own. All of the contract but name filters."""

    capabilities = frozenset(Capability) - {Capability.NAMES, Capability.WITHIN}

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._records: dict[str, Record] = {}
        self._gone: dict[str, tuple[bytes, datetime]] = {}
        self._paused: set[str] = set()
        self._workers: dict[str, tuple[WorkerInfo, datetime]] = {}
        self._hints = Hints(self._clock)
        self._arrivals = 0

    async def open(self) -> None:
        """Nothing to open: the store is there from the constructor on."""

    async def close(self) -> None:
        """Nothing to close; the jobs stay until the instance goes."""

    # --- the job store --------------------------------------------------------------------------

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued]:
        now = now or self._clock.now()
        with self._lock:
            answers: list[Enqueued] = []
            fresh: list[tuple[NewJob, bytes]] = []
            for job in jobs:
                content = content_digest(job)
                known = self._known_content(job.id, now)
                if known is None:
                    fresh.append((job, content))
                same = known is None or known == content
                answers.append(Enqueued.CREATED if same else Enqueued.DUPLICATE)
            if Enqueued.DUPLICATE not in answers:
                for job, content in fresh:
                    self._arrivals += 1
                    self._records[job.id] = Record(
                        job=stored(job, now), arrival=self._arrivals, content=content
                    )
                self._hints.tell()
            return answers

    def _known_content(self, job_id: str, now: datetime) -> bytes | None:
        if job_id in self._records:
            return self._records[job_id].content
        content, until = self._gone.get(job_id, (None, now))
        return content if until > now else None

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        now = now or self._clock.now()
        with self._lock:
            claims: list[Claim] = []
            taken = dict.fromkeys((queue.name for queue in request.queues), 0)
            size = 0
            for queue, record in self._candidates(request, now):
                if taken[queue.name] >= queue.limit:
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
        record.hold = None
        self._hints.tell()
        return Recorded.APPLIED

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
        now = now or self._clock.now()
        with self._lock:
            holds = tuple(
                ExpiredHold(hold=hold, until=until, lease=record.lease)
                for until, hold, record in self._run_out(now)[:limit]
            )
            return Expired(now=now, holds=holds)

    def _run_out(self, now: datetime) -> list[tuple[datetime, Hold, Record]]:
        found = [
            (record.until, record.hold, record)
            for record in self._records.values()
            if record.hold is not None and record.until is not None and record.until <= now
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
                for _, hold, record in self._run_out(now)
                if only is None or hold in only
            ][:limit]
            for _, record in found:
                job = record.job
                record.change(
                    now,
                    state=State.PENDING,
                    serial=job.serial + 1,
                    stalls=job.stalls + 1,
                    run_at=now + timedelta(seconds=delays[min(job.stalls, len(delays) - 1)]),
                )
                record.hold = None
            if found:
                self._hints.tell()
            return [hold for hold, _ in found]

    async def next_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> datetime | None:
        now = now or self._clock.now()
        with self._lock:
            later = [
                record.job.run_at
                for record in self._records.values()
                if record.job.state is State.PENDING
                and record.job.queue in queues
                and record.job.queue not in self._paused
                and record.job.run_at > now
            ]
            return min(later, default=None)

    async def progress(self, hold: Hold, value: bytes, *, now: datetime | None = None) -> Recorded:
        now = now or self._clock.now()
        with self._lock:
            record = self._current(hold)
            if record is None:
                return Recorded.FENCED if hold.job_id in self._records else Recorded.UNKNOWN
            record.change(now, progress=value)
            return Recorded.APPLIED

    # --- control --------------------------------------------------------------------------------

    async def cancel(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            return [self._cancel(job_id, now) for job_id in job_ids]

    def _cancel(self, job_id: str, now: datetime) -> Answer:
        record = self._records.get(job_id)
        if record is None:
            return Answer.UNKNOWN
        if record.job.state in TERMINAL:
            return Answer.FINISHED
        if record.job.state is State.PROCESSING:
            record.change(now, cancel_requested=True)
            return Answer.REQUESTED
        record.change(now, state=State.CANCELLED, finished_at=now, cancel_requested=False)
        return Answer.DONE

    async def retry(
        self, items: Sequence[ManualRetry], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            answers = [self._retry(item, now) for item in items]
            self._hints.tell()
            return answers

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        record = self._records.get(item.job_id)
        if record is None:
            return Answer.UNKNOWN
        if item.serial is not None and item.serial != record.job.serial:
            return Answer.DONE
        if record.job.state is State.PROCESSING:
            return Answer.RUNNING
        if record.job.state in _WAITING:
            return Answer.LIVE
        if record.job.state is State.COMPLETED:
            return Answer.FINISHED
        record.change(now, state=State.PENDING, attempt=0, stalls=0, run_at=now, finished_at=None)
        return Answer.DONE

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            return [self._delete(job_id, now) for job_id in job_ids]

    def _delete(self, job_id: str, now: datetime) -> Answer:
        record = self._records.get(job_id)
        if record is None:
            return Answer.UNKNOWN
        if record.job.state is State.PROCESSING:
            return Answer.RUNNING
        del self._records[job_id]
        self._gone[job_id] = (record.content, now + _ID_KNOWN)
        return Answer.DONE

    async def move(self, items: Sequence[Move], *, now: datetime | None = None) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            answers = [self._move(item, now) for item in items]
            self._hints.tell()
            return answers

    def _move(self, item: Move, now: datetime) -> Answer:
        record = self._records.get(item.job_id)
        if record is None:
            return Answer.UNKNOWN
        job = record.job
        if item.serial is not None and item.serial != job.serial:
            return Answer.LIVE
        if job.state is State.PROCESSING:
            return Answer.RUNNING
        if job.state in TERMINAL:
            return Answer.FINISHED
        record.change(
            now,
            queue=job.queue if item.queue is None else item.queue,
            run_at=job.run_at if item.at is None else item.at,
            priority=job.priority if item.priority is None else item.priority,
        )
        return Answer.DONE

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        now = now or self._clock.now()
        with self._lock:
            doomed = [
                record.job.id
                for record in self._records.values()
                if matches(record.job, which) and record.job.state is not State.PROCESSING
            ][:limit]
            for job_id in doomed:
                self._delete(job_id, now)
            return len(doomed)

    async def pause(self, queue: str, paused: bool) -> None:
        with self._lock:
            if paused:
                self._paused.add(queue)
            else:
                self._paused.discard(queue)
                self._hints.tell()

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        now = now or self._clock.now()
        with self._lock:
            self._gone = {key: entry for key, entry in self._gone.items() if entry[1] > now}
            doomed = [job.id for job in self._beyond(retention, now)][:limit]
            for job_id in doomed:
                self._delete(job_id, now)
            return len(doomed)

    def _beyond(self, retention: Retention, now: datetime) -> Iterable[Job[bytes]]:
        """The finished jobs that the retention no longer keeps, newest end first."""
        ages = {
            State.COMPLETED: retention.completed,
            State.FAILED: retention.failed,
            State.CANCELLED: retention.cancelled,
        }
        newer: dict[str, int] = {}
        ended = [r for r in self._records.values() if r.job.state in TERMINAL]
        for record in sorted(ended, key=lambda r: (end(r.job), r.arrival), reverse=True):
            job = record.job
            age = ages[job.state]
            beyond = age is not None and now - end(job) > timedelta(seconds=age)
            if job.state is State.COMPLETED and retention.completed_count is not None:
                newer[job.queue] = newer.get(job.queue, 0) + 1
                beyond = beyond or newer[job.queue] > retention.completed_count
            if beyond and now - end(job) >= _ID_KNOWN:
                yield job

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[bytes] | None:
        with self._lock:
            record = self._records.get(job_id)
            return record.job if record else None

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise InvalidConfiguration("cursor", cursor, "must be one that this store gave")
        with self._lock:
            before = self._arrivals + 1 if cursor is None else int(cursor)
            matching = [
                record
                for record in self._records.values()
                if record.arrival < before and matches(record.job, which)
            ]
            matching.sort(key=attrgetter("arrival"), reverse=True)
            page = matching[:limit]
            more = len(matching) > limit
            return Page(
                jobs=tuple(record.job for record in page),
                cursor=str(page[-1].arrival) if more and page else None,
            )

    async def counts(self, *, now: datetime | None = None) -> Counts:
        now = now or self._clock.now()
        with self._lock:
            jobs = [record.job for record in self._records.values()]
            queues = sorted({job.queue for job in jobs} | self._paused)
            return count(
                jobs,
                now,
                by_queue={q: count([j for j in jobs if j.queue == q], now) for q in queues},
                paused=frozenset(self._paused),
            )

    # --- presence and hints ---------------------------------------------------------------------

    async def report(self, worker: WorkerInfo, ttl: float) -> None:
        with self._lock:
            until = self._clock.now() + timedelta(seconds=ttl)
            self._workers[worker.id] = (worker, until)

    async def workers(self) -> Sequence[WorkerInfo]:
        with self._lock:
            now = self._clock.now()
            self._workers = {key: kept for key, kept in self._workers.items() if kept[1] > now}
            return [info for _, (info, _) in sorted(self._workers.items())]

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        return await self._hints.wait(timeout)

    def keeper_handle(self) -> "_KeeperHandle":
        return _KeeperHandle(self)


class _KeeperHandle:
    """Extends from the keeper's thread, under the driver's lock."""

    def __init__(self, driver: MemoryDriver) -> None:
        self._driver = driver

    def extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        driver = self._driver
        with driver._lock:  # pyright: ignore[reportPrivateUsage]  # one class in two halves
            now = driver._clock.now()  # pyright: ignore[reportPrivateUsage]
            return [driver._extend(hold, lease, now) for hold in holds]  # pyright: ignore[reportPrivateUsage]

    def close(self) -> None:
        pass
