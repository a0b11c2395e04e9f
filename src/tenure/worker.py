"""The worker: which handlers run jobs of which queues, with which bounds.

Configuration only; what runs is in `_runtime`, and `run()` connects the two.
"""

import asyncio
import contextvars
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import timedelta
from secrets import token_hex
from typing import Any, Literal, TypeVar, cast

from tenure._runtime.handle import WorkerHandle
from tenure._runtime.lifecycle import Lifecycle
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.surroundings import Hook, Middleware, Surroundings
from tenure.dependencies import need_of
from tenure.driver import Capability
from tenure.errors import InvalidConfiguration, RuntimeUnavailable
from tenure.events import Observer
from tenure.handlers import Handler, Handlers, HandlerSpec, RetryRule
from tenure.intake import check_retention, not_negative, positive, whole
from tenure.process_pool import Prelude, ProcessPool, check_found, check_importable, importable
from tenure.queue import Queue
from tenure.retry import RetryPolicy
from tenure.serving import SERVED
from tenure.task import Task
from tenure.tasks import Tasks
from tenure.types import Retention
from tenure.worker_queues import checked_name, listed, served, still_served

__all__ = ["Worker"]

H = TypeVar("H", bound=Callable[..., Any])
F = TypeVar("F", bound=Hook)

_LEASE = 30.0
_RETENTION = Retention()


class Worker:
    """Runs the jobs of some queues, at most `concurrency` at once.

    Durations are seconds or `timedelta`.

    - `poll_interval`: how long an idle worker waits at most before it looks again (hints from the
      store usually wake it in milliseconds);
    - `job_timeout`: the time limit of an attempt where neither dispatch nor registration gave one;
    - `lease`: how long a claim is valid unless extended, which happens every third of it; None is
      30 s, or, on a store that cannot extend, twice the longest time limit;
    - `drain_timeout`: what `shutdown()` gives running handlers by default;
    - `overdue_grace`: how long the lease of a handler that cannot be interrupted is kept past its
      deadline; None is its time limit, at least one lease;
    - `queues`: the names to serve, each with the same share of the worker, or a mapping of names to
      weights: `{"mail": 5, "default": 1}` gives mail five jobs for each of default, as long as both
      have work; with `strict` the first always comes first; None is the default queue, and those
      that its tasks name;
    - `tasks`: sets of tasks to run, each under its name and aliases;
    - `slots`: how many of the slots a queue may take, by name: `{"slow": 2}`;
    - `replacement_slots`: how many slots are added while as many handlers are overdue (past their
      time limit, and not to be interrupted) and keep their own: with 0 each takes one away until it
      returns; a worker all of whose slots are taken so is unhealthy, and says so;
    - `max_stalls`: leases that may run out in a row before a job is failed instead of started;
    - `prefetch`: jobs claimed beyond the free slots, to save a round trip;
    - `name`: for people; the id of each run is random;
    - `observers`: functions that are told every event;
    - `middleware`: async functions around each attempt, the first outermost;
      `middleware(job, call)` returns what `await call()` does, or something else, and what it
      raises, the attempt has raised;
    - `overrides`: what is called in the place of a dependency, by its function: for tests;
    - `retention`: how long finished jobs of the store are kept, which each worker sees to in small
      steps; None deletes none. Give the workers of a store all the same: the shortest wins;
    - `process_pool`: the processes for handlers with `executor="process"`; None is
      `ProcessPool()`. Without such handlers there are none.

    Raises `InvalidConfiguration` naming the option, the value and the rule.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        concurrency: int = 16,
        poll_interval: float | timedelta = 1.0,
        job_timeout: float | timedelta = 300.0,
        lease: float | timedelta | None = None,
        drain_timeout: float | timedelta = 25.0,
        overdue_grace: float | timedelta | None = None,
        queues: Sequence[str] | Mapping[str, float] | None = None,
        tasks: Iterable[Tasks] = (),
        max_stalls: int = 5,
        prefetch: int = 0,
        name: str | None = None,
        observers: Iterable[Observer] = (),
        strict: bool = False,
        slots: Mapping[str, int] | None = None,
        replacement_slots: int = 0,
        retention: Retention | None = _RETENTION,
        process_pool: ProcessPool | None = None,
        middleware: Iterable[Middleware] = (),
        overrides: Mapping[Callable[..., Any], Callable[..., Any]] | None = None,
    ) -> None:
        self._queue = queue
        self._concurrency = whole("concurrency", concurrency, 1, 100_000)
        self._poll_interval = positive("poll_interval", poll_interval)
        self._job_timeout = positive("job_timeout", job_timeout)
        self._lease = None if lease is None else positive("lease", lease)
        self._drain_timeout = not_negative("drain_timeout", drain_timeout)
        self._overdue_grace = (
            None if overdue_grace is None else not_negative("overdue_grace", overdue_grace)
        )
        sets = _sets(tasks)
        self._queues = served(_names(sets) if queues is None else queues, slots)
        self._strict = _switch("strict", strict)
        self._max_stalls = whole("max_stalls", max_stalls, 1, 1000)
        self._prefetch = whole("prefetch", prefetch, 0, 100_000)
        self._replacement_slots = whole("replacement_slots", replacement_slots, 0, 100_000)
        self._name = None if name is None else checked_name("name", name)
        self._observers = tuple(observers)
        self._retention = None if retention is None else check_retention(retention)
        self._process_pool = None if process_pool is None else _pool(process_pool)
        self._prelude: Prelude | None = None
        self._middleware = _functions("middleware", middleware)
        self._overrides = {
            function: need_of(other) for function, other in (overrides or {}).items()
        }
        self._on_start: list[Hook] = []
        self._on_stop: list[Hook] = []
        self._handlers = Handlers()
        self._longest = self._job_timeout
        self._check_lease()
        for task in (task for each in sets for task in each):
            self._add_task(task)

    @property
    def queue(self) -> Queue:
        """The queue whose jobs it runs."""
        return self._queue

    @property
    def drain_timeout(self) -> float:
        """The seconds that `shutdown()` gives running handlers by default."""
        return self._drain_timeout

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of the queues that it serves."""
        return tuple(queue.name for queue in self._queues)

    @property
    def poll_interval(self) -> float:
        """The seconds that an idle worker waits at most before it looks again."""
        return self._poll_interval

    @property
    def replacement_slots(self) -> int:
        """How many slots are added at most for handlers past their time limit."""
        return self._replacement_slots

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The functions that are told every event."""
        return self._observers

    @property
    def handlers(self) -> Mapping[str, HandlerSpec]:
        """What is registered, by name; later registrations do not show."""
        return self._handlers.snapshot()

    def adjusted(
        self,
        *,
        concurrency: int | None = None,
        queues: Sequence[str] | Mapping[str, float] | None = None,
        observers: Iterable[Observer] = (),
        prelude: Prelude | None = None,
    ) -> "Worker":
        """A worker with the same handlers; what is None stays, `observers` come to its own.

        `prelude` is what each process of its pool does before all else.
        """
        other = copy(self)
        other._observers = (*self._observers, *observers)
        if prelude is not None:
            other._prelude = prelude
        if concurrency is not None:
            other._concurrency = whole("concurrency", concurrency, 1, 100_000)
        if queues is not None:
            other._queues = still_served(self._queues, queues)
        return other

    def register(
        self,
        name: str,
        handler: Handler,
        *,
        retry: RetryRule | None = None,
        timeout: float | timedelta | None = None,
        executor: Literal["process"] | None = None,
        replace: bool = False,
    ) -> None:
        """Let `handler(payload)` or `handler(payload, job)` run the jobs of this name.

        An `async def` runs on the event loop, a plain `def` in a thread. `retry` says when a failed
        attempt is followed by another; without it, and without `max_attempts` at dispatch, there is
        one attempt. `timeout` limits an attempt. With `executor="process"` the handler, async or
        not, runs in a process of the worker's `process_pool`, which is killed where it has to stop;
        it must be found by its name in its module.
        A name that is taken is refused unless `replace`. Running workers do not change.
        """
        process = _process(handler, executor)
        if process is not None:
            check_importable("handler", handler, process)
        self._add(name, handler, retry, timeout, process, replace=replace)

    def _add(
        self,
        name: str,
        handler: Handler,
        retry: RetryRule | None,
        timeout: float | timedelta | None,
        process: str | None,
        *,
        replace: bool,
    ) -> None:
        limit = None if timeout is None else positive("timeout", timeout)
        if limit is not None and limit > self._longest:
            self._check_lease(limit)
        self._handlers.add(
            checked_name("name", name),
            handler,
            retry=retry,
            timeout=limit,
            replace=replace,
            process=process,
        )
        self._longest = max(self._longest, limit or 0.0)

    def handler(
        self,
        name: str,
        *,
        retry: RetryRule | None = None,
        timeout: float | timedelta | None = None,
        executor: Literal["process"] | None = None,
        replace: bool = False,
    ) -> Callable[[H], H]:
        """`register` as a decorator; the function itself is left as it is."""

        def decorate(function: H) -> H:
            # Its module has it under its name only after this: `run` looks.
            process = _process(function, executor)
            self._add(name, function, retry, timeout, process, replace=replace)
            return function

        return decorate

    def on_start(self, hook: F) -> F:
        """Call this before the first claim of each run; a decorator. Async or plain (in a thread).

        What it raises is reported, and the run ends before it has claimed anything.
        """
        self._on_start += _functions("on_start", [hook])
        return hook

    def on_stop(self, hook: F) -> F:
        """Call this after the last handler of each run; a decorator. Async or plain (in a thread).

        The last registered is called first. It has what is left of the drain time, and is then
        cancelled. What it raises is reported as `HookFailed`.
        """
        self._on_stop += _functions("on_stop", [hook])
        return hook

    def _add_task(self, task: Task[..., Any]) -> None:
        defaults = task.defaults
        retry = defaults.retry
        if retry is None and defaults.max_attempts is not None:
            retry = RetryPolicy(max_attempts=defaults.max_attempts)
        if defaults.timeout is not None and defaults.timeout > self._longest:
            self._check_lease(defaults.timeout)
            self._longest = defaults.timeout
        process = _process(task.function, defaults.executor)
        if process is not None and task.signature.needs:
            rule = f"must be None for the task {task.name!r}, since it has dependencies"
            raise InvalidConfiguration("executor", defaults.executor, rule)
        for name in (task.name, *task.aliases):
            self._handlers.add(
                name,
                task.function,
                retry=retry,
                timeout=defaults.timeout,
                replace=False,
                binding=task.signature,
                process=process,
            )

    def run(self) -> WorkerHandle:
        """Start one run on the running event loop, with the handlers registered so far.

        Several runs of one worker are independent of each other. Raises `RuntimeUnavailable`
        outside an event loop, and for a closed queue, and `InvalidConfiguration` for a handler that
        a process would not find; then nothing was started.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeUnavailable(
                "a worker runs on an event loop: call run() inside a coroutine, for example one "
                "started by asyncio.run()"
            ) from None
        if self._queue.closed:
            raise RuntimeUnavailable("the queue is closed; open it again with `await queue`")
        handlers = self._handlers.snapshot()
        check_found(handlers.values())
        lifecycle = Lifecycle(
            self._settings(),
            handlers,
            self._queue.driver,
            self._queue.clock,
            self._observers,
            self._queue.waits,
        )
        self._queue.attach(lifecycle, loop)
        context = contextvars.copy_context()
        context.run(SERVED.set, self._queue)  # to which handlers dispatch
        context.run(lifecycle.start)
        return WorkerHandle(lifecycle, loop)

    def _settings(self) -> WorkerSettings:
        return WorkerSettings(
            worker_id=token_hex(8),
            name=self._name,
            concurrency=self._concurrency,
            poll_interval=self._poll_interval,
            job_timeout=self._job_timeout,
            lease=self._effective_lease(),
            drain_timeout=self._drain_timeout,
            overdue_grace=self._overdue_grace,
            queues=self._queues,
            strict=self._strict,
            max_stalls=self._max_stalls,
            prefetch=self._prefetch,
            replacement_slots=self._replacement_slots,
            result_limit=self._queue.payload_limit,
            codec=self._queue.codec,
            retention=self._retention,
            process_pool=self._process_pool,
            prelude=self._prelude,
            surroundings=Surroundings(
                middleware=self._middleware,
                on_start=tuple(self._on_start),
                on_stop=tuple(self._on_stop),
                overrides=self._overrides,
            ),
        )

    def _effective_lease(self) -> float:
        if self._lease is not None:
            return self._lease
        if Capability.EXTEND in self._queue.capabilities:
            return _LEASE
        return 2 * self._longest

    def _check_lease(self, timeout: float | None = None) -> None:
        """Where leases cannot be extended, one must outlast every job."""
        longest = timeout or self._job_timeout
        if self._lease is None or Capability.EXTEND in self._queue.capabilities:
            return
        if self._lease <= longest:
            raise InvalidConfiguration(
                "lease",
                self._lease,
                f"must be longer than every time limit (here {longest:g} s), since this store "
                "cannot extend leases",
            )


def _process(handler: Handler, executor: object) -> str | None:
    """The name under which a process finds the handler; None where it runs in the worker."""
    if executor is None:
        return None
    if executor != "process":
        raise InvalidConfiguration("executor", executor, "must be None or 'process'")
    return importable("handler", handler)


def _pool(value: object) -> ProcessPool:
    if not isinstance(value, ProcessPool):
        raise InvalidConfiguration("process_pool", value, "must be a tenure.ProcessPool, or None")
    return value


def _switch(option: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidConfiguration(option, value, "must be True or False")
    return value


def _sets(tasks: object) -> tuple[Tasks, ...]:
    sets = (None,) if isinstance(tasks, Tasks) else listed(tasks)
    if not all(isinstance(given, Tasks) for given in sets) or (tasks and not sets):
        rule = "must be a list of tenure.Tasks, such as [tasks]"
        raise InvalidConfiguration("tasks", tasks, rule)
    return cast("tuple[Tasks, ...]", sets)


def _names(sets: tuple[Tasks, ...]) -> list[str]:
    """The queues that are served where none is named."""
    return list(
        dict.fromkeys(["default", *(task.defaults.queue for each in sets for task in each)])
    )


def _functions(option: str, given: Iterable[H]) -> tuple[H, ...]:
    functions = tuple(given)
    for function in functions:
        if not callable(function):
            raise InvalidConfiguration(option, function, "must be given a function")
    return functions
