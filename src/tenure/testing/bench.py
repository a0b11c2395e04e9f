"""A bench: a queue in memory, a worker and a clock for a program's tests, each test its own.

Jobs go through the real dispatch, codec, worker and driver; only time and the store are played. It
must never change a program's state but for the tasks that it binds, and it gives those back.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from tenure._runtime.handle import WorkerHandle
from tenure.call import Call
from tenure.codec import decode
from tenure.errors import (
    HandlerNotFound,
    HookFailed,
    InvalidConfiguration,
    RuntimeUnavailable,
    WorkerTaskError,
)
from tenure.handlers import Handler, RetryRule
from tenure.intake import not_negative
from tenure.outcomes import Completed
from tenure.queue import Queue
from tenure.task import Task, Using
from tenure.tasks import Tasks
from tenure.testing.bench_queue import BenchQueue
from tenure.testing.bench_store import BenchStore
from tenure.testing.clock import ManualClock, real_moment
from tenure.testing.dispatched import ANYTHING, Dispatched, found, seen
from tenure.testing.processed import Processed
from tenure.testing.sync_bench import SyncBench
from tenure.types import Job
from tenure.view import decoded
from tenure.worker import Worker

__all__ = ["Bench"]

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[..., Any])

_IDLE = 3600.0  # seconds: hints and starts find everything, so that time can be passed in few steps
_PATIENCE = 10.0  # real seconds
_A_MOMENT = 0.001  # seconds of the clock
_MOST = 10_000  # attempts, or steps of the clock, in one call


class Bench:
    """Runs a program's jobs in a test, when the test says so, in milliseconds.

    `tasks` are bound to its `queue` until `close`, which `with` calls; then they are bound to what
    they were bound to before. `worker` is the program's own way to make its worker, given the
    queue, with its middleware, say; without it all queues are served. With `inline` (also to be
    set later), a dispatch runs its job before it returns, where that is due at once.

    Time passes only by `advance`, `drain(with_scheduled=True)` and `time_out`, for everything
    alike: due times, backoff, schedules, leases, retention; and by `clock`, a `ManualClock`.
    A handler that waits for the real world is waited for, ten seconds at most.

    Async methods may be awaited on any event loop; `sync` has them for tests that are not async.
    """

    def __init__(
        self,
        *,
        tasks: Iterable[Tasks] = (),
        worker: Callable[[Queue], Worker] | None = None,
        inline: bool = False,
    ) -> None:
        self.inline: bool = inline
        self.clock: ManualClock = ManualClock()
        self._store = BenchStore(clock=self.clock, every_queue=worker is None)
        self.queue: Queue = BenchQueue(self._store, self.clock, self._dispatched_inline)
        self._make = worker
        self._registered: list[Callable[[Worker], None]] = []
        self._overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        self._handle: WorkerHandle | None = None
        self._bound: list[tuple[Tasks, Queue | None]] = []
        for each in tasks:
            self.bind(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Bind the tasks to what they were bound to before, and close the queue where it can be.

        On an event loop the queue is not closed: nothing of it needs to be.
        """
        while self._bound:
            tasks, before = self._bound.pop()
            tasks.bind(before)
        with suppress(RuntimeUnavailable):
            self.queue.sync.close()

    @property
    def sync(self) -> SyncBench:
        """What runs jobs, for tests that are not async."""
        return SyncBench(self)

    # --- what runs the jobs ---------------------------------------------------------------------

    def bind(self, tasks: Tasks) -> None:
        """Let these tasks be dispatched to the bench, and run on it, until it is closed."""
        self._bound.append((tasks, tasks.queue))
        tasks.bind(self.queue)

    def register(
        self,
        name: str,
        handler: Handler,
        *,
        retry: RetryRule | None = None,
        timeout: float | timedelta | None = None,
    ) -> None:
        """As `Worker.register`; a name that is taken gets the new handler."""
        self._registered.append(
            lambda worker: worker.register(
                name, handler, retry=retry, timeout=timeout, replace=True
            )
        )

    def handler(
        self,
        name: str,
        *,
        retry: RetryRule | None = None,
        timeout: float | timedelta | None = None,
    ) -> Callable[[H], H]:
        """`register` as a decorator."""

        def decorate(function: H) -> H:
            self.register(name, function, retry=retry, timeout=timeout)
            return function

        return decorate

    def override(self, function: Callable[..., Any], other: Callable[..., Any]) -> None:
        """Give handlers what `other` returns where they depend on `function` (`Depends`).

        A `worker` of the program's own has overrides of its own.
        """
        self._overrides[function] = other

    def _worker(self) -> Worker:
        if self._make is None:
            tasks = list(dict.fromkeys(tasks for tasks, _ in self._bound))
            worker = Worker(self.queue, tasks=tasks, poll_interval=_IDLE, overrides=self._overrides)
        else:
            worker = self._make(self.queue)
        for register in self._registered:
            register(worker)
        return worker

    # --- what was dispatched --------------------------------------------------------------------

    @property
    def dispatched(self) -> Sequence[Dispatched]:
        """The jobs that were stored, in order, whatever has become of them; of schedules, too."""
        return [seen(job) for job in self._store.dispatched]

    def assert_dispatched(
        self,
        name: "str | Task[..., Any]",
        *,
        args: Any = ANYTHING,
        queue: str | None = None,
        count: int | None = None,
    ) -> list[Dispatched]:
        """Raise `AssertionError` unless such a job was dispatched; return those that were.

        `name` is a name or a task. `args` is the payload; of a mapping only what it names is
        compared, so that `args={"to": "a@example.com"}` finds a task by one of its arguments.
        `count` is the exact number, 0 for none; without it one or more will do.
        """
        wanted = name if isinstance(name, str) else name.name
        return found(self.dispatched, wanted, args, queue, count)

    # --- running them ---------------------------------------------------------------------------

    async def drain(self, *, with_scheduled: bool = False) -> list[Job[Any]]:
        """Run jobs until none is due any more; the jobs that have ended meanwhile, in that order.

        `with_scheduled` also passes the time until those that are due later, retries and snoozed
        ones too, are run. It does not wait for schedules; one whose instant passes is fired. A
        handler's error does not raise: it is in the job. Raises `HandlerNotFound` for a job without
        a handler, `AssertionError` for a handler that does not return and when there is no end.
        """
        ended, recorded = len(self._store.ended), len(self._store.outcomes)
        while True:
            await self._run_due()
            if len(self._store.outcomes) - recorded > _MOST:
                raise AssertionError(
                    f"{_MOST:,} attempts have ended and jobs are still due; do they "
                    "dispatch, retry or snooze one another without end?"
                )
            due = await self._store.next_due(self._store.queues) if with_scheduled else None
            if due is None:
                return self._ended_since(ended)
            await self._pass_until(due)

    async def advance(self, duration: float | timedelta) -> list[Job[Any]]:
        """Let time pass (seconds or `timedelta`), and run each job and tick when it is due.

        Returns and raises as `drain` does. Schedules follow `missed` as on a worker that runs.
        """
        end = self.clock.now() + timedelta(seconds=not_negative("duration", duration))
        ended = len(self._store.ended)
        while True:
            await self._run_due()
            following = [
                instant
                for instant in (await self._store.next_due(self._store.queues), await self._tick())
                if instant is not None and instant < end
            ]
            if not following:
                break
            await self._pass_until(min(following))
        await self._pass_until(end)
        await self._run_due()
        return self._ended_since(ended)

    @overload
    async def process(
        self, job: "Task[P, R] | Using[P, R]", /, *args: P.args, **kwargs: P.kwargs
    ) -> Processed[R]: ...
    @overload
    async def process(self, job: str, payload: Any = None, /) -> Processed[Any]: ...
    async def process(self, job: Any, /, *args: Any, **kwargs: Any) -> Processed[Any]:
        """Dispatch one job and run its first attempt now; no other job is run meanwhile.

        `job` is a task, also with options (`send.using(timeout=5)`), followed by its arguments; or
        a name, followed by the payload. Raises `HandlerNotFound`, and what `dispatch` does.
        """
        return await self._process(job, args, kwargs, passing=False)

    @overload
    async def time_out(
        self, job: "Task[P, R] | Using[P, R]", /, *args: P.args, **kwargs: P.kwargs
    ) -> Processed[R]: ...
    @overload
    async def time_out(self, job: str, payload: Any = None, /) -> Processed[Any]: ...
    async def time_out(self, job: Any, /, *args: Any, **kwargs: Any) -> Processed[Any]:
        """As `process`, and pass the time until its time limit while the handler waits."""
        return await self._process(job, args, kwargs, passing=True)

    async def _process(
        self, job: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, passing: bool
    ) -> Processed[Any]:
        call = Call(job, *args) if isinstance(job, str) else job.call(*args, **kwargs)
        inline, self.inline = self.inline, False
        try:
            [handle] = await self.queue.dispatch_many([call])
        finally:
            self.inline = inline
        before = len(self._store.outcomes)
        if handle.created:
            await self._run_only({handle.id}, passing=passing)
        outcome = self._store.outcome_of(handle.id)
        if outcome is None or len(self._store.outcomes) == before:
            raise AssertionError(
                f"job {handle.id} ({call.name}) was not run: it is due later, its queue is paused "
                "or not served, or another job holds its unique key or its limit"
            )
        result = None
        if isinstance(outcome, Completed):
            result = None if outcome.result is None else decode(outcome.result)
            task = self._task(call.name)
            result = result if task is None else task.signature.read_result(result)
        return Processed(outcome=outcome, job=await self.queue.get(handle.id), returned=result)

    def _task(self, name: str) -> Task[..., Any] | None:
        """The task of this name, among those that are bound."""
        every = (task for tasks, _ in self._bound for task in tasks)
        return next((task for task in every if name in (task.name, *task.aliases)), None)

    async def _dispatched_inline(self, job_ids: Sequence[str]) -> None:
        """Run jobs that were just dispatched, if the bench does so."""
        if not self.inline:
            return
        if self._handle is None:
            await self._run_only(set(job_ids), passing=False)
            return
        # A job that runs has dispatched them: its worker runs them as well.
        if self._store.only is not None:
            self._store.only |= set(job_ids)
            self._store.tell()
        jobs = [await self.queue.get(job_id) for job_id in job_ids]
        waiting = [job.id for job in jobs if job.run_at <= self.now]
        while any(self._store.outcome_of(job_id) is None for job_id in waiting):
            await real_moment()

    @property
    def now(self) -> datetime:
        """What time it is on the clock."""
        return self.clock.now()

    # --- how they are run -----------------------------------------------------------------------

    async def _run_only(self, job_ids: set[str], *, passing: bool) -> None:
        before, self._store.only = self._store.only, job_ids
        try:
            await self._run_due(passing=passing)
        finally:
            self._store.only = before

    async def _run_due(self, *, passing: bool = False) -> None:
        """Run a worker at this instant, again as long as it leaves something that it could take."""
        while True:
            before = len(self._store.outcomes)
            async with self._running() as handle:
                await self._until_quiet(handle, passing=passing)
            if not self._store.claimable() or len(self._store.outcomes) == before:
                return

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[WorkerHandle]:
        if self._handle is not None:
            raise InvalidConfiguration(
                "bench", self._handle, "must not be run by two at once, or by one of its handlers"
            )
        self._store.forget()
        handle = self._handle = self._worker().run()
        try:
            yield handle
        except BaseException:
            handle.abort()
            raise
        finally:
            self._handle = None
            ending = asyncio.ensure_future(handle.shutdown(drain=0))
            await self._until_ended(ending)

    async def _until_ended(self, ending: "asyncio.Future[Any]") -> None:
        """Wait in real time; the bound of a shutdown is one of the clock."""
        for turn in itertools.count(1):
            await self.clock.settle()
            if ending.done():
                break
            await real_moment()
            if turn % 100 == 0:
                await self.clock.advance(1.0)
        await ending

    async def _until_quiet(self, handle: WorkerHandle, *, passing: bool) -> None:
        """Wait until nothing is being processed that could be waited for."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE
        for _ in range(_MOST):
            await self.clock.settle()
            self._raise_what_is_wrong(handle)
            processing = self._store.processing
            if not processing:
                return
            if loop.time() > until:
                break
            if passing:
                await self.clock.step()
            elif self._store.claimable():
                await self.clock.advance(_A_MOMENT)  # the worker has asked a moment ago
            else:
                await real_moment()
        raise AssertionError(
            f"{', '.join(self._store.processing)} did not return within {_PATIENCE:g} real "
            "seconds; where its time limit is to end it, use `time_out`"
        )

    def _raise_what_is_wrong(self, handle: WorkerHandle) -> None:
        """Errors of the arrangement are the test's; those of handlers are in their jobs."""
        while (error := handle.try_next_error()) is not None:
            if isinstance(error, HandlerNotFound | HookFailed | WorkerTaskError):
                raise error

    def _ended_since(self, start: int) -> list[Job[Any]]:
        return [decoded(job, None) for job in self._store.ended[start:]]

    async def _tick(self) -> datetime | None:
        """The next instant of a schedule."""
        schedules = await self.queue.schedules()
        ticks = [s.next for s in schedules if not s.paused and s.next is not None]
        return min(ticks, default=None)

    async def _pass_until(self, instant: datetime) -> None:
        await self.clock.advance(max(0.0, (instant - self.clock.now()).total_seconds()))
