"""The SQLite driver: the contract, spelled as operations that the engine runs.

Says which operation goes where, and nothing else: what an operation does is in its own module, how
it is run in `engine.py` and `clerk.py`. Every write is decided inside one transaction of the only
writer, so no answer can be out of date when it is given.
"""

import logging
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from tenure.beside import Lifeline
from tenure.clock import Clock
from tenure.driver import Capability, RecordItem
from tenure.drivers.sqlite import (
    control,
    deletion,
    inspection,
    leases,
    presence,
    record,
    schema,
    ticking,
)
from tenure.drivers.sqlite.beside import Beside
from tenure.drivers.sqlite.claim import claim
from tenure.drivers.sqlite.connection import Settings, is_path
from tenure.drivers.sqlite.engine import Engine
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.exchange import exchange
from tenure.drivers.sqlite.history import history
from tenure.drivers.sqlite.lifelines import Lifelines
from tenure.drivers.sqlite.steady import steady
from tenure.drivers.sqlite.within import run_within
from tenure.errors import InvalidConfiguration
from tenure.history import PastAttempt
from tenure.presence import WorkerInfo
from tenure.standing import Fired, NewSchedule, Schedules, Tick
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Exchanged,
    Expired,
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

__all__ = ["SqliteDriver"]

_SYNCHRONOUS = ("FULL", "NORMAL")
_FOR_OTHERS = 0.02  # seconds between the steps of a prune, for the others who write
_logger = logging.getLogger("tenure.sqlite")


class SqliteDriver(Beside):
    """Jobs in one SQLite file, shared by any number of threads, event loops and processes.

    `path` names a file, made when it is missing, on a disk of this machine (the write-ahead log
    does not work over a network), or is ":memory:" for a store that ends with `close`. The file may
    hold an application's own tables too.

    `synchronous` is "FULL" or "NORMAL". FULL flushes each commit to the disk: what was accepted
    stays. NORMAL leaves that to the system: when the machine loses power or its system crashes, the
    last commits may be gone, accepted jobs and recorded outcomes with them; the file is never
    damaged, and a crash of the process alone loses nothing.

    `within=` takes a caller's own `sqlite3` connection to the same file, also behind SQLAlchemy.
    Its transaction keeps all other writers waiting until it ends, those of leases too.

    `busy_timeout` is how many seconds a call waits while another process holds the write lock,
    before it raises `StoreUnavailable`. `clock` is the store's time. Without `migrate` an older
    schema is refused instead of upgraded; tables are made in any case where there are none.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.NAMES}

    def __init__(
        self,
        path: str,
        *,
        synchronous: str = "FULL",
        busy_timeout: float = 30.0,
        clock: Clock,
        migrate: bool = True,
    ) -> None:
        if not is_path(path):
            raise InvalidConfiguration("path", path, "must be the path of a file, or ':memory:'")
        if synchronous not in _SYNCHRONOUS:
            raise InvalidConfiguration("synchronous", synchronous, "must be FULL or NORMAL")
        if not 0 <= busy_timeout <= 3600:
            raise InvalidConfiguration("busy_timeout", busy_timeout, "must be 0 to 3600 seconds")
        self._path = path
        self._clock = clock
        self._engine = Engine(
            Settings(
                path=path, synchronous=synchronous, busy_timeout=busy_timeout, migrate=migrate
            ),
            clock,
        )
        self._lifelines = Lifelines(None if path == ":memory:" else path, clock)

    # --- life cycle -----------------------------------------------------------------------------

    async def open(self) -> None:
        _logger.debug("opening a store", extra={"sqlite_version": sqlite3.sqlite_version})
        await self._engine.open()

    async def close(self) -> None:
        await self._engine.close()

    async def check(self) -> None:
        await self._engine.read(schema.check())

    # --- the job store --------------------------------------------------------------------------

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        return await self._engine.write(enqueue(jobs, now))

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        return await self._engine.write(claim(request, now))

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        return await self._engine.write(record.record(items, now))

    async def exchange(
        self, items: Sequence[RecordItem], request: ClaimRequest, *, now: datetime | None = None
    ) -> Exchanged:
        return await self._engine.write(exchange(items, request, now))

    async def enqueue_within(
        self, jobs: Sequence[NewJob], connection: object
    ) -> Sequence[Enqueued | Held]:
        return await run_within(connection, enqueue(jobs, None), self._path, self._clock)

    async def record_within(
        self, items: Sequence[RecordItem], connection: object
    ) -> Sequence[Recorded]:
        return await run_within(connection, record.record(items, None), self._path, self._clock)

    async def extend(
        self, holds: Sequence[Hold], lease: float, *, now: datetime | None = None
    ) -> Sequence[Kept]:
        return await self._engine.write(leases.extend(holds, lease, now))

    async def expired(self, limit: int, *, now: datetime | None = None) -> Expired:
        found = await self._engine.read(leases.expired(limit, now))
        return found if now else await steady(found, self._engine, self._clock)

    async def reclaim(
        self,
        limit: int,
        delays: Sequence[float],
        *,
        only: Sequence[Hold] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Hold]:
        holds = None if only is None else frozenset(only)
        return await self._engine.write(leases.reclaim(limit, delays, holds, now))

    async def next_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> datetime | None:
        return await self._engine.read(inspection.next_due(queues, now))

    async def oldest_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[datetime | None]:
        return await self._engine.read(inspection.oldest_due(queues, now))

    async def progress(self, hold: Hold, value: bytes, *, now: datetime | None = None) -> Recorded:
        return await self._engine.write(record.progress(hold, value, now))

    # --- control --------------------------------------------------------------------------------

    async def cancel(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        return await self._engine.write(control.cancel(job_ids, now))

    async def retry(
        self, items: Sequence[ManualRetry], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        return await self._engine.write(control.retry(items, now))

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        return await self._engine.write(deletion.delete(job_ids, now))

    async def move(self, items: Sequence[Move], *, now: datetime | None = None) -> Sequence[Answer]:
        return await self._engine.write(control.move(items, now))

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        # Found on a snapshot and checked again when deleted. None is only answered when nothing
        # matches: were all that was found gone meanwhile, it looks again.
        while seqs := await self._engine.read(deletion.purgeable(which, limit)):
            deleted = await self._engine.write(deletion.purge(seqs, which, now))
            if deleted:
                return deleted
        return 0

    async def pause(self, queue: str, paused: bool) -> None:
        await self._engine.write(control.pause(queue, paused))

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        deleted = 0
        while True:
            step = await self._engine.write(deletion.prune(retention, limit - deleted, now))
            deleted += step.number
            if not step.cut or deleted >= limit:
                return deleted
            await self._clock.sleep(_FOR_OTHERS)

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[bytes] | None:
        return await self._engine.read(inspection.get(job_id))

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        return await self._engine.read(inspection.list_jobs(which, cursor, limit))

    async def counts(self, *, now: datetime | None = None) -> Counts:
        return await self._engine.read(inspection.counts(now))

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        return await self._engine.read(history(job_id))

    # --- schedules ------------------------------------------------------------------------------

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, now: datetime | None = None
    ) -> None:
        await self._engine.write(ticking.put_schedules(schedules, now))

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[bool]:
        return await self._engine.write(ticking.drop_schedules(ids))

    async def pause_schedule(self, id: str, paused: bool, *, now: datetime | None = None) -> bool:
        return await self._engine.write(ticking.pause_schedule(id, paused, now))

    async def schedules(self, *, now: datetime | None = None) -> Schedules:
        return await self._engine.read(ticking.schedules(now))

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        return await self._engine.write(ticking.fire(ticks, now))

    # --- presence and hints ---------------------------------------------------------------------

    async def report(self, worker: WorkerInfo, ttl: float) -> None:
        await self._engine.write(presence.report(worker, ttl))

    async def workers(self) -> Sequence[WorkerInfo]:
        return await self._engine.read(presence.workers())

    async def lifeline(self, worker: str) -> Lifeline | None:
        return self._lifelines.tie(worker)

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        return await self._lifelines.shorten(self._engine, now)

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        return await self._engine.wait(timeout)

    def keeper_handle(self) -> "_KeeperHandle":
        return _KeeperHandle(self._engine)


class _KeeperHandle:
    """Extends from the keeper's thread, ahead of all that waits for the writer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        return self._engine.write_blocking(leases.extend(holds, lease, None))

    def close(self) -> None:
        """Nothing of its own to give up."""
