"""The queue: the object through which a program dispatches jobs and looks after them.

Checks and encodes what comes in, decodes what goes out, and repeats a write whose answer was lost.
It holds no jobs and no policy of its own; everything is in the store behind its driver.
"""

import asyncio
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self, overload

from tenure import drivers
from tenure.answering import answered, may_exist
from tenure.call import Call, new_job
from tenure.clock import Clock, SystemClock
from tenure.driver import Capability, Driver
from tenure.errors import (
    DuplicateJob,
    InvalidConfiguration,
    InvalidJob,
    JobNotFound,
    PartialDispatch,
    QueueError,
    StoreUnavailable,
    Unsupported,
)
from tenure.ids import JobIds
from tenure.intake import DEFAULT_PAYLOAD_LIMIT, check_codec, check_name
from tenure.job_handle import JobHandle
from tenure.payload_codec import PayloadCodec
from tenure.states import State
from tenure.store import Store
from tenure.types import Answer, Counts, Enqueued, Job, JobFilter, ManualRetry, NewJob, Page
from tenure.view import decoded

__all__ = ["Queue", "connect"]

CHUNK = 1000


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
    **options: object,
) -> "Queue":
    """A queue on the store that `url` names; it opens on `await`, `async with` or first use.

    URLs: `memory://`; `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite:///:memory:`;
    `redis://host:port/database`, `rediss://` with TLS, `unix:///path`; `postgresql://host/database`.
    `options` are the store's, also possible in the URL's query: for SQLite `synchronous` ("FULL"
    or "NORMAL"), `busy_timeout` (seconds); for Redis `namespace`, `timeout`, `connect_timeout`,
    `tls_ca`; for PostgreSQL `schema`, `pool_size`, `timeout`, `pooled`; for all `migrate`, whether
    an older store is upgraded (SQLite does by default). `payload_limit` is in bytes of JSON, for
    payloads and results. `codec` encrypts both at rest, and progress: see `Fernet`. Raises
    `InvalidConfiguration` before anything is touched, also for an extra that is not installed.
    """
    timing = clock or SystemClock()
    driver = drivers.connect(url, options, timing)
    return Queue(driver, clock=timing, payload_limit=payload_limit, codec=codec)


class Queue:
    """Jobs in one store. Safe to share between tasks, and between event loops where it says so.

    `driver` is an unopened `Driver`, or a function that makes one, for a store whose connections
    belong to one event loop: then each loop gets its own. A call whose answer was lost is repeated
    with the same ids for up to 30 s before `StoreUnavailable` is raised. `payload_limit` and
    `codec` are as for `connect`.
    """

    def __init__(
        self,
        driver: Driver | Callable[[], Driver],
        *,
        clock: Clock | None = None,
        payload_limit: int = DEFAULT_PAYLOAD_LIMIT,
        codec: PayloadCodec | None = None,
    ) -> None:
        if isinstance(payload_limit, bool) or payload_limit < 1:
            raise InvalidConfiguration("payload_limit", payload_limit, "must be at least 1 byte")
        self._runs: weakref.WeakKeyDictionary[Run, asyncio.AbstractEventLoop] = (
            weakref.WeakKeyDictionary()
        )
        self.clock = clock or SystemClock()
        self.payload_limit = payload_limit
        self.codec = None if codec is None else check_codec(codec)
        self._store = Store(driver, self.clock)
        self._ids = JobIds()

    # --- life cycle -----------------------------------------------------------------------------

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the store can do; known before it is opened."""
        return self._store.capabilities

    @property
    def closed(self) -> bool:
        return self._store.closed

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

    async def driver(self) -> Driver:
        """The opened driver for the running event loop; the queue opens it when needed."""
        return await self._store.driver()

    def attach(self, run: Run, loop: asyncio.AbstractEventLoop) -> None:
        """Let `close` know of a running worker."""
        self._runs[run] = loop

    async def close(self) -> None:
        """Shut down workers that still run on this queue (drain=0), then close the store.

        Legal twice, and before the queue was ever opened.
        """
        here = asyncio.get_running_loop()
        for run, loop in list(self._runs.items()):
            if not run.running or not loop.is_running():
                continue  # where the loop stands still, nothing could stop it in order
            if loop is here:
                await run.queue_closed()
            else:
                there = asyncio.run_coroutine_threadsafe(run.queue_closed(), loop)
                await asyncio.wrap_future(there)
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
        same content is stored once.

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
            headers=headers,
            id=id,
        )
        job = new_job(
            call,
            ids=self._ids,
            now=self.clock.now(),
            payload_limit=self.payload_limit,
            codec=self.codec,
        )
        await self._enqueue([job], within)
        return self._handle(job)

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
        now = self.clock.now()
        jobs = [
            new_job(
                call,
                ids=self._ids,
                now=now,
                payload_limit=self.payload_limit,
                codec=self.codec,
                path=f"calls[{index}].",
            )
            for index, call in enumerate(calls)
        ]
        _refuse_repeated_ids(jobs)
        size = CHUNK if within is None else max(1, len(jobs))
        for start in range(0, len(jobs), size):
            chunk = jobs[start : start + size]
            try:
                await self._enqueue(chunk, within)
            except QueueError as error:
                unsure = isinstance(error, StoreUnavailable) and error.ambiguous
                if start == 0 and not unsure:
                    raise
                raise PartialDispatch(
                    stored=[job.id for job in jobs[:start]],
                    unsure=[job.id for job in chunk] if unsure else [],
                ) from error
            if progress is not None:
                progress(start + len(chunk))
        return [self._handle(job) for job in jobs]

    def _handle(self, job: NewJob) -> JobHandle:
        return JobHandle(job.id, created=True, get=self.get, clock=self.clock)

    async def _enqueue(self, jobs: Sequence[NewJob], within: object | None) -> None:
        if not jobs:
            return
        driver = await self.driver()
        if Capability.DELAY not in driver.capabilities and any(
            job.delay or job.at is not None for job in jobs
        ):
            raise Unsupported("delay and at")
        if within is None:
            answers, _ = await self._store.repeat(lambda: driver.enqueue(jobs))
        elif Capability.WITHIN in driver.capabilities:
            answers = await driver.enqueue_within(jobs, within)
        else:
            raise Unsupported("within=")
        for job, answer in zip(jobs, answers, strict=True):
            if answer is Enqueued.DUPLICATE:
                raise DuplicateJob(job.id)

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[Any]:
        """The job as it is stored now. Raises `JobNotFound`."""
        driver = await self.driver()
        job = await driver.get(job_id) if may_exist(job_id) else None
        if job is None:
            raise JobNotFound(job_id)
        return decoded(job, self.codec)

    async def list(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Any]:
        """Up to `limit` jobs that match, newest first; pass the page's `cursor` for the next.

        The store is searched in bounded steps, so that a rare match costs no one else anything.
        """
        if type(limit) is not int or not 1 <= limit <= 1000:
            raise InvalidConfiguration("limit", limit, "must be from 1 to 1,000")
        which = JobFilter(
            state=_state(state),
            queue=None if queue is None else check_name("queue", queue),
            name=None if name is None else check_name("name", name),
        )
        driver = await self.driver()
        jobs: tuple[Job[Any], ...] = ()
        while True:
            page = await driver.list(which, cursor, limit - len(jobs))
            jobs += tuple(decoded(job, self.codec) for job in page.jobs)
            cursor = page.cursor
            if cursor is None or len(jobs) >= limit:
                return Page(jobs=jobs, cursor=cursor)

    async def counts(self) -> Counts:
        """How many jobs are in which state, in all and by queue; cheap whatever is stored."""
        return await (await self.driver()).counts()

    # --- control --------------------------------------------------------------------------------

    @overload  # a str is an Iterable[str] too, and the first signature wins
    async def cancel(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    async def cancel(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    async def cancel(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """Cancel one job or many; one answer for each, never an error for it.

        | answer | the job |
        |---|---|
        | `done` | was waiting and is cancelled |
        | `requested` | is running: its handler is cancelled; what it finishes first stands |
        | `finished` | had ended already |
        | `unknown` | does not exist; nothing is left behind |
        """
        driver = await self.driver()

        async def ask(ids: Sequence[str]) -> Sequence[Answer]:
            answers, _ = await self._store.repeat(lambda: driver.cancel(ids))
            return answers

        return await answered(job_ids, ask)

    @overload  # a str is an Iterable[str] too, and the first signature wins
    async def retry(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    async def retry(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    async def retry(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """Make failed and cancelled jobs due now, with fresh attempts; one answer for each.

        | answer | the job |
        |---|---|
        | `done` | had failed or been cancelled and is pending again |
        | `finished` | has completed |
        | `running` | is being processed |
        | `live` | is waiting already |
        | `unknown` | does not exist |
        """
        driver = await self.driver()

        async def ask(ids: Sequence[str]) -> Sequence[Answer]:
            # The serial makes a repeat harmless after the job has been run and failed once more.
            jobs = [await driver.get(job_id) for job_id in ids]
            items = [
                ManualRetry(job_id, job.serial if job else None)
                for job_id, job in zip(ids, jobs, strict=True)
            ]
            answers, repeated = await self._store.repeat(lambda: driver.retry(items))
            if not repeated:
                return answers
            done = (Answer.LIVE, Answer.RUNNING)
            ended = [job is not None and job.state in _ENDED_BADLY for job in jobs]
            return [
                Answer.DONE if was and answer in done else answer
                for was, answer in zip(ended, answers, strict=True)
            ]

        return await answered(job_ids, ask)

    @overload  # a str is an Iterable[str] too, and the first signature wins
    async def delete(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    async def delete(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    async def delete(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """Delete jobs that are not being processed; one answer for each.

        | answer | the job |
        |---|---|
        | `done` | is gone |
        | `running` | is being processed, and stays: cancel it first |
        | `unknown` | does not exist |
        """
        driver = await self.driver()

        async def ask(ids: Sequence[str]) -> Sequence[Answer]:
            answers, repeated = await self._store.repeat(lambda: driver.delete(ids))
            return [Answer.DONE if repeated and a is Answer.UNKNOWN else a for a in answers]

        return await answered(job_ids, ask)

    async def pause(self, queue: str) -> None:
        """Let no worker claim from this queue any more; running jobs go on."""
        await self._pause(queue, True)

    async def resume(self, queue: str) -> None:
        """Let workers claim from this queue again."""
        await self._pause(queue, False)

    async def _pause(self, queue: str, paused: bool) -> None:
        driver = await self.driver()
        name = check_name("queue", queue)
        await self._store.repeat(lambda: driver.pause(name, paused))

    def __repr__(self) -> str:
        return f"<Queue on {self._store.kind}{' (closed)' if self.closed else ''}>"


_ENDED_BADLY = frozenset({State.FAILED, State.CANCELLED})


def _state(state: State | str | None) -> State | None:
    try:
        return None if state is None else State(state)
    except ValueError:
        raise InvalidConfiguration("state", state, f"must be one of {', '.join(State)}") from None


def _refuse_repeated_ids(jobs: Sequence[NewJob]) -> None:
    seen: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job.id in seen:
            raise InvalidJob(
                f"calls[{index}].id", f"must differ from that of calls[{seen[job.id]}]: {job.id!r}"
            )
        seen[job.id] = index
