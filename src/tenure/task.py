"""One task: a function, its name, and the ways to call and to dispatch it.

Where a job goes and with which options is decided here; what is stored of the arguments in
`task_signature.py`. It must not open a store by itself.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar

from msgspec import Struct

from tenure._runtime.current import CURRENT
from tenure.call import Call
from tenure.dependencies import INJECTED
from tenure.errors import InvalidConfiguration
from tenure.handlers import RetryRule
from tenure.intake import Unique
from tenure.job_handle import JobHandle
from tenure.queue import Queue
from tenure.serving import SERVED
from tenure.sync.job_handle import SyncJobHandle
from tenure.task_signature import TaskSignature

__all__ = ["AsyncTask", "SyncTask", "Task", "TaskDefaults", "TaskSet", "Using"]

P = ParamSpec("P")
R = TypeVar("R")


class TaskSet(Protocol):
    """The set in which a task is declared, as far as it concerns its dispatch."""

    @property
    def queue(self) -> Queue | None:
        """Where its jobs go outside of handlers."""
        ...

    @property
    def propagate(self) -> tuple[str, ...]:
        """The headers that jobs take over from the job in whose handler they are dispatched."""
        ...


class TaskDefaults(Struct, frozen=True, kw_only=True):
    """What a dispatch of a task takes where it says nothing else, and how a worker runs it."""

    queue: str = "default"
    priority: int = 0
    max_attempts: int | None = None
    timeout: float | None = None
    limits: tuple[str, ...] = ()
    retry: RetryRule | None = None
    executor: Literal["process"] | None = None


class Task(Generic[P, R]):
    """A function whose calls can be dispatched. `@tasks.task` makes it.

    Called like the function it is the function. `name` links its jobs to it, as do `aliases`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        tasks: TaskSet,
        name: str,
        aliases: tuple[str, ...],
        defaults: TaskDefaults,
    ) -> None:
        as_callable: Any = self
        functools.update_wrapper(as_callable, function)
        self.function = function
        self.name = name
        self.aliases = aliases
        self.defaults = defaults
        self.declared_in = tasks

    @staticmethod
    def of(
        function: Callable[..., Any],
        tasks: TaskSet,
        name: str,
        aliases: tuple[str, ...],
        defaults: TaskDefaults,
    ) -> "Task[..., Any]":
        """The task of a function, async or plain."""
        kind: type[Task[..., Any]] = SyncTask
        if inspect.iscoroutinefunction(function):
            kind = AsyncTask
        return kind(function, tasks, name, aliases, defaults)

    @functools.cached_property
    def signature(self) -> TaskSignature:
        """What is stored of its arguments. Raises `InvalidConfiguration` as `task` says."""
        return TaskSignature(self.function, f"task {self.name!r}")

    @property
    def __tenure_handler__(self) -> Callable[[Any, Any], Any]:
        """What a process calls that finds the task by its name: a handler of (payload, job)."""
        return self._handle

    def _handle(self, payload: Any, job: Any) -> Any:
        signature = self.signature
        arguments = signature.arguments(payload)
        if signature.job is not None:
            arguments[signature.job] = job
        value = self.function(**arguments)
        if inspect.isawaitable(value):
            return self._awaited(value)
        return signature.result(value)

    async def _awaited(self, value: Awaitable[Any]) -> Any:
        return self.signature.result(await value)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its payload, for whoever dispatches it by name."""
        return self.signature.schema()

    # --- dispatch -------------------------------------------------------------------------------

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Dispatch a call; when this returns, the job is durable.

        It goes to the queue of the running handler's worker, else to the one that the tasks are
        bound to. Raises `InvalidJob` with the path of an argument of the wrong type, `TypeError` as
        the call itself would, `InvalidConfiguration` where there is no queue, and what
        `Queue.dispatch` raises.
        """
        return await _Plan(self).enqueue(args, kwargs)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """`enqueue` for threads without an event loop: scripts, sync web handlers, plain handlers.

        It blocks until the job is durable; see `SyncQueue`.
        """
        return _Plan(self).enqueue_sync(args, kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """The call as a value, checked now, for `Queue.dispatch_many`."""
        return _Plan(self).call(args, kwargs)

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay: float | timedelta | None = None,
        at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        unique: str | Unique | None = None,
        limits: tuple[str, ...] | list[str] | None = None,
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
        within: object | None = None,
        on: Queue | None = None,
    ) -> "Using[P, R]":
        """The task with options for a dispatch, those of `Queue.dispatch`; None is the task's own.

        `on` is the queue to dispatch to. The options never mix with the arguments of the call:
        `send.using(delay=60).enqueue("a@example.com")`.
        """
        options = {
            "queue": queue,
            "priority": priority,
            "delay": delay,
            "at": at,
            "max_attempts": max_attempts,
            "timeout": timeout,
            "unique": unique,
            "limits": limits,
            "headers": headers,
            "id": id,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return Using(_Plan(self, given, within, on))

    def _check_injected(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An ordinary call fills nothing in."""
        bound = inspect.signature(self.function).bind_partial(*args, **kwargs)
        bound.apply_defaults()
        missing = [name for name, value in bound.arguments.items() if value is INJECTED]
        if missing:
            raise TypeError(
                f"task {self.name!r}: pass {', '.join(missing)} in an ordinary call; only a worker "
                "fills it in"
            )

    def __repr__(self) -> str:
        return f"<Task {self.name!r}>"


class AsyncTask(Task[P, R]):
    """A task whose function is async."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """An ordinary call, without a queue."""
        self._check_injected(args, kwargs)
        coroutine: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return coroutine


class SyncTask(Task[P, R]):
    """A task whose function is plain; a worker runs it in a thread, or in a process."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """An ordinary call, without a queue."""
        self._check_injected(args, kwargs)
        value: R = self.function(*args, **kwargs)
        return value


class Using(Generic[P, R]):
    """A task with options for its dispatches; `Task.using` makes it."""

    __slots__ = ("_plan",)

    def __init__(self, plan: "_Plan") -> None:
        self._plan = plan

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """As `Task.enqueue`, with the options."""
        return await self._plan.enqueue(args, kwargs)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """As `Task.enqueue_sync`, with the options."""
        return self._plan.enqueue_sync(args, kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """As `Task.call`, with the options; `on` and `within` belong to `Queue.dispatch_many`."""
        return self._plan.call(args, kwargs)


class _Plan:
    """How one task is dispatched: its defaults, what was said instead, and where to."""

    __slots__ = ("_options", "_queue", "_task", "_within")

    def __init__(
        self,
        task: Task[..., Any],
        options: Mapping[str, Any] | None = None,
        within: object | None = None,
        queue: Queue | None = None,
    ) -> None:
        self._task = task
        self._options = options or {}
        self._within = within
        self._queue = queue

    async def enqueue(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobHandle[Any]:
        payload, options = self._made(args, kwargs)
        handle = await self._where().dispatch(
            self._task.name, payload, within=self._within, **options
        )
        return handle.reading(self._task.signature.read_result)

    def enqueue_sync(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SyncJobHandle[Any]:
        payload, options = self._made(args, kwargs)
        queue = self._where().sync
        handle = queue.dispatch(self._task.name, payload, within=self._within, **options)
        return handle.reading(self._task.signature.read_result)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        for option, value in (("on", self._queue), ("within", self._within)):
            if value is not None:
                rule = "must be given to dispatch_many, or its queue, instead"
                raise InvalidConfiguration(option, value, rule)
        payload, options = self._made(args, kwargs)
        return Call(self._task.name, payload, **options)

    def _made(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The payload, and the options of the dispatch."""
        defaults = self._task.defaults
        options: dict[str, Any] = {
            "queue": defaults.queue,
            "priority": defaults.priority,
            "max_attempts": defaults.max_attempts,
            "timeout": defaults.timeout,
            "limits": defaults.limits,
            **self._options,
        }
        if inherited := self._inherited():
            options["headers"] = {**inherited, **options.get("headers", {})}
        return self._task.signature.payload(args, kwargs), options

    def _inherited(self) -> dict[str, str]:
        names = self._task.declared_in.propagate
        running = CURRENT.get(None) if names else None
        if running is None:
            return {}
        headers = running().headers
        return {name: headers[name] for name in names if name in headers}

    def _where(self) -> Queue:
        queue = self._queue or SERVED.get(None) or self._task.declared_in.queue
        if queue is None:
            raise InvalidConfiguration(
                "queue",
                None,
                f"for task {self._task.name!r} must be known: call tasks.bind(queue), or "
                f"{self._task.name}.using(on=queue)",
            )
        return queue
