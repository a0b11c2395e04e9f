"""The memory driver: the shortest correct reading of the contract, and the reference for others.

Everything is in this process and gone with it. It must never do what a store with a disk could not.
Here are the parts that look, keep schedules and limits, and tell of workers; `job_store.py`,
`control.py` and `moving.py` have the rest. Its lifelines only play: a process that ends takes the
store with it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import ClassVar

from tenure.beside import Lifeline
from tenure.driver import Capability
from tenure.drivers.memory.moving import Moving
from tenure.drivers.memory.records import count, matches
from tenure.errors import InvalidConfiguration
from tenure.history import PastAttempt
from tenure.presence import WorkerInfo
from tenure.standing import Fired, Limit, NewSchedule, Schedules, Tick
from tenure.types import Counts, Hold, Job, JobFilter, Kept, Page

__all__ = ["MemoryDriver"]


class MemoryDriver(Moving):
    """A store in memory, each instance its own. All of the contract but name filters."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.NAMES,
        Capability.WITHIN,
    }

    async def open(self) -> None:
        """Nothing to open: the store is there from the constructor on."""

    async def close(self) -> None:
        """Nothing to close; the jobs stay until the instance goes."""

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[bytes] | None:
        with self._lock:
            record = self._records.get(job_id)
            return record.job if record else None

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
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

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        with self._lock:
            record = self._records.get(job_id)
            return tuple(record.history) if record else ()

    # --- limits ---------------------------------------------------------------------------------

    async def put_limit(self, limit: Limit) -> None:
        with self._lock:
            self._limits.put(limit)
            self._hints.tell()

    async def drop_limit(self, key: str) -> bool:
        with self._lock:
            self._hints.tell()
            return self._limits.drop(key)

    async def limits(self) -> Sequence[Limit]:
        with self._lock:
            return self._limits.all()

    # --- schedules ------------------------------------------------------------------------------

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, now: datetime | None = None
    ) -> None:
        now = now or self._clock.now()
        with self._lock:
            for schedule in schedules:
                self._schedules.put(schedule, now)

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[bool]:
        with self._lock:
            return [self._schedules.drop(schedule_id) for schedule_id in ids]

    async def pause_schedule(self, id: str, paused: bool, *, now: datetime | None = None) -> bool:
        now = now or self._clock.now()
        with self._lock:
            return self._schedules.pause(id, paused, now)

    async def schedules(self, *, now: datetime | None = None) -> Schedules:
        now = now or self._clock.now()
        with self._lock:
            return Schedules(now=now, items=self._schedules.all())

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        now = now or self._clock.now()
        with self._lock:
            answers = [self._fire(tick, now) for tick in ticks]
            self._hints.tell()
            return answers

    def _fire(self, tick: Tick, now: datetime) -> Fired:
        answer = self._schedules.pass_tick(tick, now)
        if answer is Fired.FIRED and tick.job is not None and self._known(tick.job, now) is None:
            self._store(tick.job, now)
        return answer

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

    async def lifeline(self, worker: str) -> Lifeline | None:
        return _Lifeline(self, worker)

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        now = now or self._clock.now()
        with self._lock:
            left = [
                record
                for record in self._records.values()
                if record.hold is not None and record.worker in self._gone_workers
            ]
            for record in left:
                if record.until is not None and record.until > now:
                    record.until, record.lease = now, 0.0
            self._gone_workers = {record.worker for record in left}
            return 0.0 if left else None

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


class _Lifeline:
    """Cut by `cut` alone."""

    def __init__(self, driver: MemoryDriver, worker: str) -> None:
        self._driver = driver
        self._worker: str | None = worker

    async def close(self) -> None:
        self._worker = None

    async def cut(self) -> None:
        worker, self._worker = self._worker, None
        driver = self._driver
        if worker is not None:
            with driver._lock:  # pyright: ignore[reportPrivateUsage]  # as above
                driver._gone_workers.add(worker)  # pyright: ignore[reportPrivateUsage]
