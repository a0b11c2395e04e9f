"""The queue: the object through which a program dispatches jobs and looks after them.

Its life and `dispatch` are here, the other calls in its parts (see the bases of `Queue`). It
checks and encodes what comes in, decodes what goes out, and repeats a write whose answer was lost.
It holds no jobs and no policy of its own; everything is in the store behind its driver.
"""

import asyncio
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from tenure import drivers
from tenure.around import DispatchMiddleware, check_middleware, surrounded
from tenure.bulk import Bulk
from tenure.call import Call, new_job, new_jobs
from tenure.clock import Clock, SystemClock
from tenure.control import Control
from tenure.driver import Capability, Driver
from tenure.elsewhere import call_elsewhere
from tenure.errors import (
    DuplicateJob,
    InvalidConfiguration,
    PartialDispatch,
    QueueError,
    StoreUnavailable,
    Unsupported,
)
from tenure.inspection import Inspection
from tenure.intake import DEFAULT_PAYLOAD_LIMIT, Unique
from tenure.job_handle import JobHandle
from tenure.limiting import Limiting
from tenure.payload_codec import PayloadCodec
from tenure.scheduling import Scheduling
from tenure.store import Store
from tenure.types import Enqueued, Held, NewJob
from tenure.waits import Waits

if TYPE_CHECKING:
    from tenure.sync import SyncQueue

__all__ = ["Queue", "connect"]

CHUNK = 1000

_ALL_OPTIONS = {Capability.DELAY, Capability.UNIQUE, Capability.LIMITS}


class Run(Protocol):
    """A running worker, as far as the closing of its queue concerns it."""

    @property
    def running(self) -> bool: ...

    async def queue_closed(self) -> None:
        """Shut down with drain=0 and report why."""
        ...


def connect(
    url: str,
    *,
    payload_limit: int = DEFAULT_PAYLOAD_LIMIT,
    codec: PayloadCodec | None = None,
    clock: Clock | None = None,
    middleware: Iterable[DispatchMiddleware] = (),
    **options: object,
) -> "Queue":
    """A queue on the store that `url` names; it opens on `await`, `async with` or first use.

    URLs: `memory://`; `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite:///:memory:`;
    `redis://host:port/database`, `rediss://` with TLS, `unix:///path`; `postgresql://host/database`.
    `options` are the store's, also possible in the URL's query: for SQLite `synchronous` ("FULL"
    or "NORMAL"), `busy_timeout` (seconds); for Redis `namespace`, `timeout`, `connect_timeout`,
    `tls_ca`; for PostgreSQL `schema`, `pool_size`, `timeout`, `pooled`; for all `migrate`, whether
    an older store is upgraded (SQLite does by default). `payload_limit` is in bytes of JSON, for
    payloads and results. `codec` encrypts both at rest, and progress: see `Fernet`. `middleware`
    are async functions around each dispatch, the first outermost: `middleware(calls, store)` gets
    the calls, may change them, and returns what `await store(calls)` does. What it raises before
    that refuses the dispatch, what it raises afterwards is logged. Raises `InvalidConfiguration`
    before anything is touched, also for an extra that is not installed.
    """
    timing = clock or SystemClock()
    driver = drivers.connect(url, options, timing)
    return Queue(
        driver, clock=timing, payload_limit=payload_limit, codec=codec, middleware=middleware
    )


class Queue(Bulk, Control, Inspection, Limiting, Scheduling):
    """Jobs in one store. Safe to share between tasks, and between event loops where it says so.

    `driver` is an unopened `Driver`, or a function that makes one, for a store whose connections
    belong to one event loop: then each loop gets its own. A call whose answer was lost is repeated
    with the same ids for up to 30 s before `StoreUnavailable` is raised. The other options are as
    for `connect`.
    """

    def __init__(
        self,
        driver: Driver | Callable[[], Driver],
        *,
        clock: Clock | None = None,
        payload_limit: int = DEFAULT_PAYLOAD_LIMIT,
        codec: PayloadCodec | None = None,
        middleware: Iterable[DispatchMiddleware] = (),
    ) -> None:
        if isinstance(payload_limit, bool) or payload_limit < 1:
            raise InvalidConfiguration("payload_limit", payload_limit, "must be at least 1 byte")
        timing = clock or SystemClock()
        super().__init__(Store(driver, timing), timing, payload_limit, codec)
        self._runs: weakref.WeakKeyDictionary[Run, asyncio.AbstractEventLoop] = (
            weakref.WeakKeyDictionary()
        )
        self._middleware = check_middleware(middleware)
        self.waits: Waits = Waits(self.driver, timing)

    # --- life cycle -----------------------------------------------------------------------------

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the store can do; known before it is opened."""
        return self._store.capabilities

    @property
    def middleware(self) -> tuple[DispatchMiddleware, ...]:
        """The functions around each dispatch, the outermost first."""
        return self._middleware

    def add_middleware(self, middleware: DispatchMiddleware) -> None:
        """Put one more function around each dispatch from now on, as the innermost."""
        self._middleware += check_middleware([middleware])

    @property
    def closed(self) -> bool:
        return self._store.closed

    @property
    def sync(self) -> "SyncQueue":
        """The same queue for threads without an event loop: every verb blocks until it is done."""
        from tenure.sync import SyncQueue

        return SyncQueue(self)

    def __await__(self) -> Generator[Any, None, Self]:
        return self._reopen().__await__()

    async def __aenter__(self) -> Self:
        return await self._reopen()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _reopen(self) -> Self:
        self._store.closed = False
        await self._store.driver()
        return self

    def attach(self, run: Run, loop: asyncio.AbstractEventLoop) -> None:
        """Let `close` know of a running worker."""
        self._runs[run] = loop

    async def close(self) -> None:
        """Shut down workers that still run on this queue (drain=0), then close the store.

        Whoever still waits for a result gets `RuntimeUnavailable`. Legal twice, and before the
        queue was ever opened.
        """
        here = asyncio.get_running_loop()
        for run, loop in list(self._runs.items()):
            if not run.running or not loop.is_running():
                continue  # where the loop stands still, nothing could stop it in order
            if loop is here:
                await run.queue_closed()
            else:
                await call_elsewhere(loop, run.queue_closed, self.clock)
        self.waits.close()
        await self._store.close()

    # --- dispatch -------------------------------------------------------------------------------

    async def dispatch(
        self,
        name: str,
        payload: Any = None,
        *,
        queue: str = "default",
        priority: int = 0,
        delay: float | timedelta | None = None,
        at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        unique: str | Unique | None = None,
        limits: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
        within: object | None = None,
    ) -> JobHandle:
        """Store one job; when this returns, the job is durable.

        `name` links it to a handler, `payload` is any JSON value. It is due at once, after `delay`
        (seconds or `timedelta`, counted by the store's clock), or `at` an aware instant.
        `priority` is from -100 to 100, higher first. `max_attempts` bounds the starts, crashes
        included; not given, a failure or timeout is final. `timeout` limits one attempt. `headers`
        are text by name. An `id` of one's own makes the dispatch repeatable: the same id with the
        same content is stored once. `unique` is a key that one job holds at a time, alone or with
        rules of its own (`Unique`): while another job holds it nothing is stored, and the handle is
        that job's, with `created` False. `limits` are the keys, at most 8, whose `limit` the job
        counts against.

        `within` is a connection of the caller's own to the store's database, in a transaction: the
        job is stored when that commits, and never was when it rolls back. PostgreSQL takes
        connections of psycopg, sync or async, and asyncpg; SQLite those of sqlite3 to the same
        file; both also SQLAlchemy's sessions and connections over these. It is never committed,
        rolled back, closed, or left unusable. Elsewhere `Unsupported` is raised.

        Raises `InvalidJob` with the path of what is wrong, `DuplicateJob` for an id with other
        content, `StoreError` when nothing was stored; on `StoreUnavailable(ambiguous=True)`, after
        30 s, it may have been.
        """
        call = Call(
            name,
            payload,
            queue=queue,
            priority=priority,
            delay=delay,
            at=at,
            max_attempts=max_attempts,
            timeout=timeout,
            unique=unique,
            limits=limits,
            headers=headers,
            id=id,
        )
        if not self._middleware:
            return (await self._enqueue([self._checked(call)], within))[0]

        async def store(calls: Sequence[Call]) -> Sequence[JobHandle]:
            return await self._enqueue([self._checked(call) for call in calls], within)

        return (await surrounded(self._middleware, [call], store))[0]

    def _checked(self, call: Call) -> NewJob:
        return new_job(
            call,
            ids=self._ids,
            now=self.clock.now(),
            payload_limit=self.payload_limit,
            codec=self.codec,
        )

    async def dispatch_many(
        self,
        calls: Iterable[Call],
        *,
        within: object | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Sequence[JobHandle]:
        """Store many jobs, in chunks of 1,000: each chunk all or nothing.

        In a transaction of the caller's, `within`, they are one chunk whatever their number.

        Every call is checked before the first is stored. `progress` is called with the number
        stored so far after each chunk. Raises as `dispatch` does; once a chunk was stored, a
        failure is `PartialDispatch` with the ids that are safe and those that may be.
        """

        async def store(calls: Sequence[Call]) -> Sequence[JobHandle]:
            return await self._dispatch_many(calls, within, progress)

        given = list(calls)
        if not self._middleware or not given:
            return await store(given)
        return await surrounded(self._middleware, given, store)

    async def _dispatch_many(
        self,
        calls: Iterable[Call],
        within: object | None,
        progress: Callable[[int], None] | None,
    ) -> Sequence[JobHandle]:
        jobs = new_jobs(
            calls,
            ids=self._ids,
            now=self.clock.now(),
            payload_limit=self.payload_limit,
            codec=self.codec,
        )
        handles: list[JobHandle] = []
        size = CHUNK if within is None else max(1, len(jobs))
        for start in range(0, len(jobs), size):
            chunk = jobs[start : start + size]
            try:
                handles += await self._enqueue(chunk, within)
            except QueueError as error:
                unsure = isinstance(error, StoreUnavailable) and error.ambiguous
                if start == 0 and not unsure:
                    raise
                raise PartialDispatch(
                    stored=[handle.id for handle in handles if handle.created],
                    unsure=[job.id for job in chunk] if unsure else [],
                ) from error
            if progress is not None:
                progress(start + len(chunk))
        return handles

    async def run_schedule(self, id: str) -> JobHandle:
        """Dispatch the job of a schedule now, beside its instants and whether or not it is paused.

        Raises `ScheduleNotFound`.
        """
        handles = await self._enqueue([await self._job_of_schedule(id)], None)
        return handles[0]

    async def _enqueue(self, jobs: Sequence[NewJob], within: object | None) -> list[JobHandle]:
        if not jobs:
            return []
        driver = await self.driver()
        _refuse_what_cannot_be(jobs, driver.capabilities)
        if within is None:
            answers, _ = await self._store.repeat(lambda: driver.enqueue(jobs))
        elif Capability.WITHIN in driver.capabilities:
            answers = await driver.enqueue_within(jobs, within)
        else:
            raise Unsupported("within=")
        return [self._handle(job, answer) for job, answer in zip(jobs, answers, strict=True)]

    def _handle(self, job: NewJob, answer: Enqueued | Held) -> JobHandle:
        if answer is Enqueued.CREATED:
            return JobHandle(job.id, created=True, end=self.waits.end, codec=self.codec)
        if answer is Enqueued.DUPLICATE:
            raise DuplicateJob(job.id)
        return JobHandle(answer.holder, created=False, end=self.waits.end, codec=self.codec)

    def __repr__(self) -> str:
        return f"<Queue on {self._store.kind}{' (closed)' if self.closed else ''}>"


def _refuse_what_cannot_be(jobs: Sequence[NewJob], can: frozenset[Capability]) -> None:
    """Refuse an option that the store does not know, rather than drop it."""
    if can >= _ALL_OPTIONS:
        return
    for job in jobs:
        if Capability.DELAY not in can and (job.delay or job.at is not None):
            raise Unsupported("delay and at")
        if Capability.UNIQUE not in can and job.unique is not None:
            raise Unsupported("unique")
        if Capability.LIMITS not in can and job.limits:
            raise Unsupported("limits")
