"""Tasks: functions with types whose calls can be dispatched as jobs.

    tasks = tenure.Tasks(prefix="mail.")

    @tasks.task(max_attempts=5)
    async def send(to: str, subject: str = "hi") -> Receipt: ...

    tasks.bind(queue)
    job = await send.enqueue("a@example.com", subject="hello")

A layer on names and payloads, which any program may dispatch without it. Declaring opens nothing.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from datetime import timedelta
from typing import Any, Literal, ParamSpec, TypeVar, overload

from tenure.errors import InvalidConfiguration, InvalidJob
from tenure.handlers import RetryRule, nearest
from tenure.intake import check_max_attempts, check_name, check_priority, positive
from tenure.queue import Queue
from tenure.task import AsyncTask, SyncTask, Task, TaskDefaults

__all__ = ["Tasks"]

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")


class Tasks:
    """A set of tasks, declared without a queue.

    A task's name is `prefix` and the name of its function, never that of its module, so that code
    may move. Jobs dispatched from inside a handler take over those headers of its job that
    `propagate` names, such as a tenant or a trace; nothing else of the caller is carried along.
    """

    def __init__(self, prefix: str = "", *, propagate: Iterable[str] = ()) -> None:
        if prefix:
            _checked("prefix", prefix)
        self._prefix = prefix
        self._propagate = tuple(_checked("propagate", header) for header in _listed(propagate))
        self._tasks: dict[str, Task[..., Any]] = {}
        self._queue: Queue | None = None

    @property
    def queue(self) -> Queue | None:
        """The queue that `bind` named, or None."""
        return self._queue

    @property
    def propagate(self) -> tuple[str, ...]:
        """The headers that jobs take over from the job in whose handler they are dispatched."""
        return self._propagate

    def bind(self, queue: Queue | None) -> None:
        """Let `enqueue` outside of handlers go to this queue; None unbinds.

        Inside of a handler it goes to the queue of the worker that runs it.
        """
        self._queue = queue

    @overload
    def task(  # type: ignore[overload-overlap] # an async function is a plain one, too
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...

    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        queue: str = "default",
        priority: int = 0,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        retry: RetryRule | None = None,
        limits: Iterable[str] = (),
        executor: Literal["process"] | None = None,
    ) -> "Declare": ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        queue: str = "default",
        priority: int = 0,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        retry: RetryRule | None = None,
        limits: Iterable[str] = (),
        executor: Literal["process"] | None = None,
    ) -> Any:
        """Declare a function as a task; also without parentheses.

        `name` is used instead of the function's, after the prefix. `aliases` are further names,
        taken as they are, whose jobs the function runs: those from before it was renamed. `queue`,
        `priority`, `max_attempts`, `timeout` and `limits` are what a dispatch takes where it says
        nothing else, and mean what they mean there. `retry` and `executor` are as in
        `Worker.register`; without `retry`, `max_attempts` retries with the delays of `RetryPolicy`.

        Parameters are stored by name, as JSON: what msgspec encodes (dates, UUID, Decimal, enums,
        dataclasses, Structs, TypedDicts, ...) and pydantic's models. A single parameter that is
        such an object is the payload itself. A parameter annotated `RunningJob`, or with `Depends`,
        is filled in by the worker.

        Raises `InvalidConfiguration` for a name that is taken, and for parameters by name that
        cannot be stored, the latter when the task is first used.
        """
        defaults = TaskDefaults(
            queue=_checked("queue", queue),
            priority=_valid(check_priority, "priority", priority),
            max_attempts=_optional(check_max_attempts, "max_attempts", max_attempts),
            timeout=None if timeout is None else positive("timeout", timeout),
            limits=tuple(_checked("limits", key) for key in _listed(limits)),
            retry=retry,
            executor=executor,
        )
        other = tuple(_checked("aliases", alias) for alias in _listed(aliases))
        declare = Declare(self, self._prefix, name, other, defaults)
        return declare if function is None else declare(function)

    def add(self, task: Task[..., Any]) -> None:
        """Take in a task under its name and aliases. Raises where one of them is taken."""
        for name in (task.name, *task.aliases):
            if name in self._tasks:
                rule = "must not be declared already: two tasks cannot have one name"
                raise InvalidConfiguration("name", name, rule)
        self._tasks.update(dict.fromkeys((task.name, *task.aliases), task))

    def __getitem__(self, name: str) -> Task[..., Any]:
        """The task of this name or alias. Raises `KeyError` with the nearest name."""
        if name not in self._tasks:
            raise KeyError(f"there is no task {name!r}{nearest(name, self._tasks)}")
        return self._tasks[name]

    def __iter__(self) -> Iterator[Task[..., Any]]:
        return iter(dict.fromkeys(self._tasks.values()))

    def __len__(self) -> int:
        return len(dict.fromkeys(self._tasks.values()))

    def __repr__(self) -> str:
        return f"<Tasks {', '.join(task.name for task in self) or 'none'}>"


class Declare:
    """`@tasks.task(...)`: makes a task of the function that it decorates."""

    __slots__ = ("_aliases", "_defaults", "_name", "_prefix", "_tasks")

    def __init__(
        self,
        tasks: Tasks,
        prefix: str,
        name: str | None,
        aliases: tuple[str, ...],
        defaults: TaskDefaults,
    ) -> None:
        self._tasks = tasks
        self._prefix = prefix
        self._name = name
        self._aliases = aliases
        self._defaults = defaults

    @overload
    def __call__(  # type: ignore[overload-overlap] # an async function is a plain one, too
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...

    def __call__(self, function: Callable[..., Any], /) -> Any:
        given: object = function
        if isinstance(given, Task) or not callable(given):
            raise InvalidConfiguration("task", function, "must be a function")
        own = getattr(function, "__name__", None) if self._name is None else self._name
        name = _checked("name", f"{self._prefix}{own}" if own else own)
        made = Task.of(function, self._tasks, name, self._aliases, self._defaults)
        self._tasks.add(made)
        return made


def _listed(value: Iterable[str]) -> Iterable[str]:
    return (value,) if isinstance(value, str) else value


def _valid(check: Callable[[str, object], D], option: str, value: object) -> D:
    """The check of a dispatch, as that of an option."""
    try:
        return check(option, value)
    except InvalidJob as error:
        raise InvalidConfiguration(option, value, error.rule.partition(", got ")[0]) from None


def _optional(check: Callable[[str, object], D], option: str, value: object) -> D | None:
    return None if value is None else _valid(check, option, value)


def _checked(option: str, value: object) -> str:
    return _valid(check_name, option, value)
