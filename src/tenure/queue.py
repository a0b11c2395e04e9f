"""The queue: the object through which a program dispatches jobs and looks after them.

Checks and encodes what comes in, decodes what goes out, and repeats a write whose answer was lost.
It holds no jobs and no policy of its own; everything is in the store behind its driver.
"""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

from msgspec.structs import replace

from tenure import drivers
from tenure._runtime.loop import Backoff
from tenure.call import Call, new_job
from tenure.clock import Clock, SystemClock
from tenure.codec import decode
from tenure.driver import Capability, Driver
from tenure.errors import (
    DuplicateJob,
    InvalidConfiguration,
    InvalidJob,
    JobCancelled,
    JobFailed,
    JobNotFound,
    PartialDispatch,
    QueueError,
    RuntimeUnavailable,
    SerializationError,
    StoreUnavailable,
    Unsupported,
)
from tenure.intake import DEFAULT_PAYLOAD_LIMIT, check_name, seconds
from tenure.states import State
from tenure.types import Answer, Counts, Damaged, Enqueued, Job, JobFilter, NewJob, Page, Retry

__all__ = ["JobHandle", "Queue", "connect"]

T = TypeVar("T")

CHUNK = 1000
_REPEAT_FOR = 30.0  # a store knows a deleted id for twice as long
_FIRST_POLL, _LONGEST_POLL = 0.005, 0.25


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
    clock: Clock | None = None,
    **options: object,
) -> "Queue":
    """A queue on the store that `url` names; it opens on `await`, `async with` or first use.

    URLs: `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite:///:memory:`.
    `options` are the store's, also possible in the URL's query: for SQLite `synchronous`
    ("FULL" or "NORMAL"), `busy_timeout` (seconds), `migrate`. `payload_limit` is in bytes of JSON,
    for payloads and results. Raises `InvalidConfiguration` before anything is touched.
    """
    timing = clock or SystemClock()
    build = drivers.connect(url, options, timing)
    return Queue(build, clock=timing, payload_limit=payload_limit)


class Queue:
    """Jobs in one store. Safe to share between tasks, and between event loops where it says so.

    `driver` is an unopened `Driver`, or a function that makes one, for a store whose connections
    belong to one event loop: then each loop gets its own. A call whose answer was lost is repeated
    with the same ids for up to 30 s before `StoreUnavailable` is raised.
    """

    def __init__(
        self,
        driver: Driver | Callable[[], Driver],
        *,
        clock: Clock | None = None,
        payload_limit: int = DEFAULT_PAYLOAD_LIMIT,
    ) -> None:
        if isinstance(payload_limit, bool) or payload_limit < 1:
            raise InvalidConfiguration("payload_limit", payload_limit, "must be at least 1 byte")
        self._build = None if isinstance(driver, Driver) else driver
        self._first = driver if isinstance(driver, Driver) else driver()
        self._shared = Capability.SHARED in self._first.capabilities
        self._opened: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = (
            weakref.WeakKeyDictionary()
        )
        self._closed = False
        self._runs: weakref.WeakKeyDictionary[Run, asyncio.AbstractEventLoop] = (
            weakref.WeakKeyDictionary()
        )
        self.clock = clock or SystemClock()
        self.payload_limit = payload_limit

    # --- life cycle -----------------------------------------------------------------------------

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the store can do; known before it is opened."""
        return self._first.capabilities

    @property
    def closed(self) -> bool:
        return self._closed

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
        self._closed = False
        await self.driver()
        return self

    async def driver(self) -> Driver:
        """The opened driver for the running event loop; the queue opens it when needed."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None or self._closed:
            if self._closed:
                raise RuntimeUnavailable("the queue is closed; open it again with `await queue`")
            opened = self._opened[loop] = _Opened(self._driver_for_loop())
        if not opened.ready:
            async with opened.lock:
                if not opened.ready:
                    await opened.driver.open()
                    opened.ready = True
        return opened.driver

    def _driver_for_loop(self) -> Driver:
        if self._shared or not self._opened:
            return self._first
        if self._build is None:
            raise RuntimeUnavailable(
                "this queue is in use on another event loop; make a queue for each loop, or pass "
                "Queue a function that makes drivers"
            )
        return self._build()

    def attach(self, run: Run, loop: asyncio.AbstractEventLoop) -> None:
        """Let `close` know of a running worker."""
        self._runs[run] = loop

    async def close(self) -> None:
        """Shut down workers that still run on this queue (drain=0), then close the store.

        Legal twice, and before the queue was ever opened.
        """
        here = asyncio.get_running_loop()
        for run, loop in list(self._runs.items()):
            if not run.running or loop.is_closed():
                continue
            if loop is here:
                await run.queue_closed()
            else:
                there = asyncio.run_coroutine_threadsafe(run.queue_closed(), loop)
                await asyncio.wrap_future(there)
        self._closed = True
        for loop, opened in list(self._opened.items()):
            if self._shared or loop is here:
                await opened.driver.close()
            elif not loop.is_closed():
                closing = asyncio.run_coroutine_threadsafe(_close(opened.driver), loop)
                await asyncio.wrap_future(closing)
        self._opened.clear()

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
    ) -> "JobHandle":
        """Store one job; when this returns, the job is durable.

        `name` links it to a handler, `payload` is any JSON value. It is due at once, after `delay`
        (seconds or `timedelta`, counted by the store's clock), or `at` an aware instant.
        `priority` is from -100 to 100, higher first. `max_attempts` bounds the starts, crashes
        included; not given, a failure or timeout is final. `timeout` limits one attempt. `headers`
        are text by name. An `id` of one's own makes the dispatch repeatable: the same id with the
        same content is stored once.

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
        job = new_job(call, now=self.clock.now(), payload_limit=self.payload_limit)
        await self._enqueue([job])
        return JobHandle(self, job.id, created=True)

    async def dispatch_many(
        self, calls: Iterable[Call], *, progress: Callable[[int], None] | None = None
    ) -> "Sequence[JobHandle]":
        """Store many jobs, in chunks of 1,000: each chunk all or nothing.

        Every call is checked before the first is stored. `progress` is called with the number
        stored so far after each chunk. Raises as `dispatch` does; once a chunk was stored, a
        failure is `PartialDispatch` with the ids that are safe and those that may be.
        """
        now = self.clock.now()
        jobs = [
            new_job(call, now=now, payload_limit=self.payload_limit, path=f"calls[{index}].")
            for index, call in enumerate(calls)
        ]
        _refuse_repeated_ids(jobs)
        for start in range(0, len(jobs), CHUNK):
            chunk = jobs[start : start + CHUNK]
            try:
                await self._enqueue(chunk)
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
        return [JobHandle(self, job.id, created=True) for job in jobs]

    async def _enqueue(self, jobs: Sequence[NewJob]) -> None:
        if not jobs:
            return
        driver = await self.driver()
        if Capability.DELAY not in driver.capabilities and any(
            job.delay or job.at is not None for job in jobs
        ):
            raise Unsupported("delay and at")
        answers, _ = await self._repeat(lambda: driver.enqueue(jobs))
        for job, answer in zip(jobs, answers, strict=True):
            if answer is Enqueued.DUPLICATE:
                raise DuplicateJob(job.id)

    async def _repeat(self, call: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Call until there is an answer, as long as the last one may have been lost.

        Also says whether it was repeated. Every call that goes through here is safe to repeat.
        """
        unsure = False
        end = self.clock.monotonic() + _REPEAT_FOR
        backoff = Backoff(0.05, 2.0)
        while True:
            try:
                return await call(), unsure
            except StoreUnavailable as error:
                unsure = unsure or error.ambiguous
                pause = backoff.pause()
                if not unsure or self.clock.monotonic() + pause >= end:
                    if unsure and not error.ambiguous:
                        raise StoreUnavailable(str(error), ambiguous=True) from error
                    raise
            await self.clock.sleep(pause)

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[Any]:
        """The job as it is stored now. Raises `JobNotFound`."""
        job = await (await self.driver()).get(job_id)
        if job is None:
            raise JobNotFound(job_id)
        return _decoded(job)

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
        if isinstance(limit, bool) or not 1 <= limit <= 1000:
            raise InvalidConfiguration("limit", limit, "must be from 1 to 1,000")
        which = JobFilter(state=_state(state), queue=queue, name=name)
        driver = await self.driver()
        jobs: tuple[Job[Any], ...] = ()
        while True:
            page = await driver.list(which, cursor, limit - len(jobs))
            jobs += tuple(_decoded(job) for job in page.jobs)
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
        ids = _ids(job_ids)
        answers, _ = await self._repeat(lambda: driver.cancel(ids))
        return _one_or_all(job_ids, answers)

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
        ids = _ids(job_ids)
        # The serial makes a repeat harmless after the job has been run and failed once more.
        jobs = [await driver.get(job_id) for job_id in ids]
        items = [
            Retry(job_id, job.serial if job else None)
            for job_id, job in zip(ids, jobs, strict=True)
        ]
        answers, repeated = await self._repeat(lambda: driver.retry(items))
        if repeated:
            done = (Answer.LIVE, Answer.RUNNING)
            ended = [job is not None and job.state in _ENDED_BADLY for job in jobs]
            answers = [
                Answer.DONE if was and answer in done else answer
                for was, answer in zip(ended, answers, strict=True)
            ]
        return _one_or_all(job_ids, answers)

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
        ids = _ids(job_ids)
        answers, repeated = await self._repeat(lambda: driver.delete(ids))
        if repeated:
            answers = [Answer.DONE if a is Answer.UNKNOWN else a for a in answers]
        return _one_or_all(job_ids, answers)

    async def pause(self, queue: str) -> None:
        """Let no worker claim from this queue any more; running jobs go on."""
        await self._pause(queue, True)

    async def resume(self, queue: str) -> None:
        """Let workers claim from this queue again."""
        await self._pause(queue, False)

    async def _pause(self, queue: str, paused: bool) -> None:
        driver = await self.driver()
        name = check_name("queue", queue)
        await self._repeat(lambda: driver.pause(name, paused))

    def __repr__(self) -> str:
        return f"<Queue on {type(self._first).__name__}{' (closed)' if self._closed else ''}>"


class JobHandle:
    """A dispatched job. `id` is opaque; `created` is False where an existing job was returned."""

    __slots__ = ("_queue", "created", "id")

    def __init__(self, queue: Queue, job_id: str, *, created: bool) -> None:
        self._queue = queue
        self.id = job_id
        self.created = created

    async def result(self, timeout: float | timedelta | None = None) -> Any:
        """Wait until the job has ended and return what its handler returned.

        Raises `JobFailed`, `JobCancelled`, `JobNotFound` (deleted or pruned meanwhile), and
        `TimeoutError` after `timeout` seconds; None waits as long as it takes.
        """
        clock = self._queue.clock
        end = None if timeout is None else clock.monotonic() + seconds("timeout", timeout)
        pause = _FIRST_POLL
        while True:
            job = await self._queue.get(self.id)
            match job.state:
                case State.COMPLETED:
                    if isinstance(job.result, Damaged):
                        raise SerializationError(
                            f"the stored result of job {self.id} does not decode", job_id=self.id
                        )
                    return job.result
                case State.FAILED if job.error is not None:
                    raise JobFailed(job.id, job.name, job.error.attempt, job.error)
                case State.CANCELLED:
                    raise JobCancelled(job.id)
                case _:
                    pass
            if end is not None:
                left = end - clock.monotonic()
                if left <= 0:
                    raise TimeoutError(f"job {self.id} is still {job.state}")
                pause = min(pause, left)
            await clock.sleep(pause)
            pause = min(_LONGEST_POLL, pause * 1.5)

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}>"


_ENDED_BADLY = frozenset({State.FAILED, State.CANCELLED})


class _Opened:
    """The driver of one event loop, and whether it is open."""

    __slots__ = ("driver", "lock", "ready")

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.lock = asyncio.Lock()
        self.ready = False


async def _close(driver: Driver) -> None:
    await driver.close()


def _decoded(job: Job[bytes]) -> Job[Any]:
    """The view for users: payload, result and progress as values, or `Damaged`."""
    return replace(
        job,
        payload=_value(job.payload),
        result=None if job.result is None else _value(job.result),
        progress=None if job.progress is None else _value(job.progress),
    )


def _value(data: bytes) -> Any:
    try:
        return decode(data)
    except SerializationError:
        return Damaged(data)


def _state(state: State | str | None) -> State | None:
    try:
        return None if state is None else State(state)
    except ValueError:
        raise InvalidConfiguration("state", state, f"must be one of {', '.join(State)}") from None


def _ids(job_ids: str | Iterable[str]) -> Sequence[str]:
    return [job_ids] if isinstance(job_ids, str) else [*dict.fromkeys(job_ids)]


def _one_or_all(
    job_ids: str | Iterable[str], answers: Sequence[Answer]
) -> Answer | Sequence[Answer]:
    return answers[0] if isinstance(job_ids, str) else answers


def _refuse_repeated_ids(jobs: Sequence[NewJob]) -> None:
    seen: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job.id in seen:
            raise InvalidJob(
                f"calls[{index}].id", f"must differ from that of calls[{seen[job.id]}]: {job.id!r}"
            )
        seen[job.id] = index
