"""The PostgreSQL driver: the contract, spelled as operations that run in a session.

Says which operation goes where and whom it wakes, and nothing else. What an operation decides, it
decides in the server, in one statement with a commit of its own.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from tenure.beside import Lifeline
from tenure.clock import Clock
from tenure.driver import Capability, Driver, RecordItem
from tenure.drivers.postgres import (
    claim,
    control,
    enqueue,
    inspection,
    leases,
    limits,
    moving,
    presence,
    record,
    scheduling,
)
from tenure.drivers.postgres.heads import EVER
from tenure.drivers.postgres.keeper import Keeper
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.record import Settled
from tenure.drivers.postgres.schema import judge
from tenure.drivers.postgres.session import Session, open_session
from tenure.drivers.postgres.statements import Statements
from tenure.drivers.postgres.within import within
from tenure.errors import StoreError, StoreUnavailable
from tenure.history import PastAttempt
from tenure.moved import Dump, Restored, StoredJob
from tenure.presence import WorkerInfo
from tenure.standing import Fired, Limit, NewSchedule, ScheduleRecord, Schedules, Tick
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

__all__ = ["PostgresDriver"]


class PostgresDriver(Driver):
    """Jobs in one schema of a PostgreSQL database, version 15 or newer.

    `url` is `postgresql://user:password@host:port/database`; its query may hold options of the
    connection (`sslmode=require`). All that tenure stores is in the schema `schema`, which is made
    where it is missing; an older one is refused unless `migrate` is true, which needs a connection
    to the server itself.

    `pool_size` bounds the connections for statements; one more listens for jobs while somebody
    waits, and each worker has two: its keeper's, and one by which others see that it lives.
    `timeout` is how many seconds a statement may take before its connection is dropped and the call
    raises an ambiguous `StoreUnavailable`.

    `within=` takes a caller's own connection to the same database: of psycopg (3), sync or async,
    of asyncpg, or SQLAlchemy's over these. It holds up nobody else's claims and leases; but a
    dispatch of a unique key that is taken or given back in it waits, with the program's others that
    have unique keys, until it ends.

    `pooled` says that a pooler in transaction mode (PgBouncer) is in between. It is found out where
    it is not said. Statements are then not prepared, and there are no notifications: who waits
    looks every half second. `clock` keeps the driver's own time limits; the time of the store is
    the server's.
    """

    # Connections belong to the event loop that opened the driver, so it is not SHARED.
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.NAMES,
        Capability.SHARED,
    }
    # A commit and a call by themselves cost as much as twenty jobs. Compared with one of 64, two
    # of 32 did 1.04 times as many jobs of no length, and 1.12 of 1 ms; two of 128 did 1.2 times.
    overlap: ClassVar[int] = 32

    def __init__(
        self,
        url: str,
        *,
        schema: str = "tenure",
        migrate: bool = False,
        pool_size: int = 4,
        timeout: float = 10.0,
        pooled: bool | None = None,
        clock: Clock,
    ) -> None:
        self._options = Options(
            url=url,
            schema=schema,
            migrate=migrate,
            pool_size=pool_size,
            timeout=timeout,
            pooled=pooled,
        )
        self._statements = Statements(schema)
        self._clock = clock
        self._session: Session | None = None
        # What a parent process opened is kept, never closed.
        self._inherited: list[Session] = []

    # --- life cycle -----------------------------------------------------------------------------

    async def open(self) -> None:
        self._abandon_inherited()
        if self._session is None:
            self._session = await open_session(self._options, self._statements, self._clock)

    async def close(self) -> None:
        self._abandon_inherited()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def check(self) -> None:
        session = self._opened
        rows = await session.run(session.pool.fetch("schema_version"))
        judge(int(rows[0][0]) if rows else 0, self._statements.version, migrate=False)

    def _abandon_inherited(self) -> None:
        if self._session is not None and self._session.inherited:
            self._inherited.append(self._session)
            self._session = None

    @property
    def _opened(self) -> Session:
        if self._session is None:
            raise StoreUnavailable("the store is not open")
        return self._session

    # --- the job store --------------------------------------------------------------------------

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        session = self._opened
        if not jobs:
            return []
        if now is None:
            return await session.enqueue(jobs)
        answers = await session.put(enqueue.enqueue(session.pool, jobs, now), EVER)
        session.wake()
        return answers

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        session = self._opened
        claims = await session.run(claim.claim(session.pool, request, now, session.heads))
        session.wrote(len(claims))
        return claims

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        session = self._opened
        earliest = record.earliest(items, now)
        settled = await session.put(record.record(session.pool, items, now), earliest)
        self._recorded(session, items, settled)
        return settled.answers

    async def exchange(
        self, items: Sequence[RecordItem], request: ClaimRequest, *, now: datetime | None = None
    ) -> Exchanged:
        # One statement unless there is only one half, or what the token holds is asked for first.
        fused = items and request.limit > 0 and not request.again
        if not fused or not record.fits_one_statement(items):
            return await super().exchange(items, request, now=now)
        session = self._opened
        earliest = record.earliest(items, now)
        whole = earliest is not None
        call = record.exchange(session.pool, items, request, now, session.heads, whole=whole)
        try:
            settled, claims = await session.put(call, earliest)
        except StoreUnavailable:
            raise
        except StoreError:
            # Nothing was done. In two halves the outcomes are kept if only the claim fails.
            return await super().exchange(items, request, now=now)
        self._recorded(session, items, settled)
        session.wrote(len(claims))
        return Exchanged(recorded=tuple(settled.answers), claims=tuple(claims))

    def _recorded(self, session: Session, items: Sequence[RecordItem], settled: Settled) -> None:
        if settled.freed or record.makes_claimable(items):
            session.wake()
        if items:
            session.ended()
        session.wrote(len(items))

    async def enqueue_within(
        self, jobs: Sequence[NewJob], connection: object
    ) -> Sequence[Enqueued | Held]:
        async with within(connection, self._statements) as transaction:
            answers = await enqueue.enqueue(transaction, jobs, None)
            # Heard when the caller commits; inside of its transaction there is no other way.
            await transaction.fetch("notify", self._options.channel)
            return answers

    async def record_within(
        self, items: Sequence[RecordItem], connection: object
    ) -> Sequence[Recorded]:
        async with within(connection, self._statements) as transaction:
            settled = await record.record(transaction, items, None)
            if settled.freed:
                await transaction.fetch("notify", self._options.channel)
            return settled.answers

    async def extend(
        self, holds: Sequence[Hold], lease: float, *, now: datetime | None = None
    ) -> Sequence[Kept]:
        session = self._opened
        return await session.run(leases.extend(session.pool, holds, lease, now))

    async def expired(self, limit: int, *, now: datetime | None = None) -> Expired:
        session = self._opened
        return await session.run(leases.expired(session.pool, limit, now))

    async def reclaim(
        self,
        limit: int,
        delays: Sequence[float],
        *,
        only: Sequence[Hold] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Hold]:
        session = self._opened
        call = leases.reclaim(session.pool, limit, delays, only, now)
        ended = await session.put(call, None if now is None else EVER)
        if ended:
            session.wake()
        return ended

    async def next_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> datetime | None:
        session = self._opened
        return await session.run(inspection.next_due(session.pool, queues, now))

    async def oldest_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[datetime | None]:
        session = self._opened
        return await session.run(inspection.oldest_due(session.pool, queues, now))

    async def progress(self, hold: Hold, value: bytes, *, now: datetime | None = None) -> Recorded:
        session = self._opened
        return await session.run(record.progress(session.pool, hold, value, now))

    # --- control --------------------------------------------------------------------------------

    async def cancel(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        session = self._opened
        answers = await session.run(control.cancel(session.pool, job_ids, now))
        session.ended()
        return answers

    async def retry(
        self, items: Sequence[ManualRetry], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        session = self._opened
        call = control.retry(session.pool, items, now)
        answers = await session.put(call, None if now is None else EVER)
        session.wake()
        return answers

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        session = self._opened
        answers = await session.run(control.delete(session.pool, job_ids, now))
        session.ended()
        return answers

    async def move(self, items: Sequence[Move], *, now: datetime | None = None) -> Sequence[Answer]:
        session = self._opened
        answers = await session.put(control.move(session.pool, items, now), EVER)
        session.wake()
        return answers

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        session = self._opened
        return await session.run(control.purge(session.pool, which, limit, now))

    async def pause(self, queue: str, paused: bool) -> None:
        session = self._opened
        await session.put(control.pause(session.pool, queue, paused), EVER)
        if not paused:
            session.wake()

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        session = self._opened
        deleted = await session.run(control.prune(session.pool, retention, limit, now))
        session.ended()
        return deleted

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[bytes] | None:
        session = self._opened
        return await session.run(inspection.get(session.pool, job_id))

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        session = self._opened
        return await session.run(inspection.list_jobs(session.pool, which, cursor, limit))

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        session = self._opened
        return await session.run(inspection.history(session.pool, job_id))

    async def counts(self, *, now: datetime | None = None) -> Counts:
        session = self._opened
        return await session.run(inspection.counts(session.pool, now))

    # --- limits ---------------------------------------------------------------------------------

    async def put_limit(self, limit: Limit) -> None:
        session = self._opened
        await session.run(limits.put(session.pool, limit))
        session.wake()

    async def drop_limit(self, key: str) -> bool:
        session = self._opened
        dropped = await session.run(limits.drop(session.pool, key))
        session.wake()
        return dropped

    async def limits(self) -> Sequence[Limit]:
        session = self._opened
        return await session.run(limits.look(session.pool))

    # --- schedules ------------------------------------------------------------------------------

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, now: datetime | None = None
    ) -> None:
        session = self._opened
        await session.run(scheduling.put(session.pool, schedules, now))

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[bool]:
        session = self._opened
        return await session.run(scheduling.drop(session.pool, ids))

    async def pause_schedule(self, id: str, paused: bool, *, now: datetime | None = None) -> bool:
        session = self._opened
        return await session.run(scheduling.pause(session.pool, id, paused, now))

    async def schedules(self, *, now: datetime | None = None) -> Schedules:
        session = self._opened
        return await session.run(scheduling.look(session.pool, now))

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        session = self._opened
        answers = await session.put(scheduling.fire(session.pool, ticks, now), EVER)
        session.wake()
        return answers

    # --- moving ---------------------------------------------------------------------------------

    async def dump(self, cursor: str | None, limit: int, *, now: datetime | None = None) -> Dump:
        session = self._opened
        return await session.run(moving.dump(session.pool, cursor, limit, now))

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        session = self._opened
        answers = await session.put(moving.restore(session.pool, jobs, now), EVER)
        session.ended()
        session.wake()
        return answers

    async def restore_schedules(self, schedules: Sequence[ScheduleRecord]) -> Sequence[Restored]:
        session = self._opened
        return await session.run(moving.restore_schedules(session.pool, schedules))

    # --- presence and hints ---------------------------------------------------------------------

    async def report(self, worker: WorkerInfo, ttl: float) -> None:
        session = self._opened
        await session.run(presence.report(session.pool, worker, ttl))

    async def workers(self) -> Sequence[WorkerInfo]:
        session = self._opened
        return await session.run(presence.workers(session.pool))

    async def lifeline(self, worker: str) -> Lifeline | None:
        return await self._opened.lifeline(worker)

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        return await self._opened.shorten(now)

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        return await self._opened.wait(queues, timeout)

    def keeper_handle(self) -> Keeper:
        return self._opened.keeper()
