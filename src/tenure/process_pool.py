"""Handlers in processes of their own: the options of the pool, and the name a handler has there.

Pure: no process is started, and `multiprocessing` is loaded only where a start method is named.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tenure.errors import InvalidConfiguration, RuntimeUnavailable
from tenure.handlers import HandlerSpec
from tenure.intake import whole

__all__ = [
    "Prelude",
    "ProcessDied",
    "ProcessPool",
    "check_found",
    "check_importable",
    "found",
    "handler_of",
    "importable",
]

_MOST = 1000
_LEAST_MEMORY = 1024 * 1024
_ADVICE = (
    "so that a process finds it by its name: move it to the top of a module, and pass what it "
    "needs in the payload"
)


class ProcessDied(Exception):
    """The process of a handler died before the handler had ended.

    It is what a retry policy sees of such an attempt: `retry_on=(tenure.ProcessDied,)`. The job's
    stored failure has the kind "panic", and says how the process died.
    """


@dataclass(frozen=True, slots=True)
class Prelude:
    """What each process does first of all: a function by its name, `module:qualname`, and a text.

    For a program around a worker, such as the command line: the initializer is the app's own.
    """

    function: str
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPool:
    """The processes of one run of a worker, for handlers registered with `executor="process"`.

    - `size`: how many; None for as many as this process may use CPUs. There are never more than
      the worker's `concurrency`;
    - `start_method`: "spawn" (a fresh interpreter, what None means) or "forkserver" (copies of one,
      not on Windows);
    - `max_jobs`: after so many jobs a process is replaced by a fresh one; None never does;
    - `memory_limit`: bytes that one process may have in memory. One that has more while its job
      runs is killed, and the attempt has failed; one that keeps half of what the limit leaves to
      jobs is replaced after its job. None is no limit; only Linux can tell;
    - `initializer`: a function without arguments that each process calls before its first job, to
      set up logging or to load a model. It must be importable, as handlers must.

    Raises `InvalidConfiguration` naming the option, the value and the rule.
    """

    size: int | None = None
    start_method: str | None = None
    max_jobs: int | None = 1000
    memory_limit: int | None = None
    initializer: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            whole("size", self.size, 1, _MOST)
        if self.max_jobs is not None:
            whole("max_jobs", self.max_jobs, 1, 2**53)
        if self.start_method is not None:
            _check_start_method(self.start_method)
        if self.memory_limit is not None:
            whole("memory_limit", self.memory_limit, _LEAST_MEMORY, 2**53)
            if sys.platform != "linux":
                rule = "must be None, since only Linux tells what a process has in memory"
                raise InvalidConfiguration("memory_limit", self.memory_limit, rule)
        if self.initializer is not None:
            importable("initializer", self.initializer)


def _check_start_method(value: object) -> None:
    from multiprocessing import get_all_start_methods

    there = [name for name in ("spawn", "forkserver") if name in get_all_start_methods()]
    if value not in there:
        names = " or ".join(repr(name) for name in there)
        raise InvalidConfiguration("start_method", value, f"must be {names} on this system")


def importable(option: str, function: object) -> str:
    """The name under which a process imports a function, `module:qualname`.

    Raises `InvalidConfiguration` for what has none: a lambda, a nested function, a bound method, an
    object, and anything that was defined in an interactive session.
    """
    module: object = getattr(function, "__module__", None)
    name: object = getattr(function, "__qualname__", None)
    bound = getattr(function, "__self__", None)
    if (
        not callable(function)
        or not isinstance(module, str)
        or not isinstance(name, str)
        or not (bound is None or isinstance(bound, type(sys) | type))
    ):
        rule = f"must be a function at the top of a module, {_ADVICE}"
        raise InvalidConfiguration(option, function, rule)
    if "<" in name:  # <lambda>, <locals>
        kind = "a lambda" if name.endswith("<lambda>") else "a function inside another"
        rule = f"must not be {kind}, {_ADVICE}"
        raise InvalidConfiguration(option, function, rule)
    if module == "__main__" and not _is_program(sys.modules.get("__main__")):
        rule = f"must not be defined in an interactive session, {_ADVICE}"
        raise InvalidConfiguration(option, function, rule)
    return f"{module}:{name}"


def check_importable(option: str, function: object, path: str) -> None:
    """Refuse a function that is not what its own name leads to. Its module is loaded by now."""
    try:
        there = found(path)
    except (ImportError, AttributeError):
        there = None
    handler = getattr(there, "__tenure_handler__", None)
    # A task stands where its function was.
    same = there == function or (
        handler is not None and function in (handler, getattr(there, "__wrapped__", None))
    )
    if not same:
        rule = f"must be what its name {path!r} leads to in its module, since processes find it so"
        raise InvalidConfiguration(option, function, rule)


def check_found(handlers: Iterable[HandlerSpec]) -> None:
    """As a worker starts: its processes will find their handlers.

    Raises `InvalidConfiguration` for one that its module does not have under its name, and
    `RuntimeUnavailable` in a process of a pool that imports the program.
    """
    in_processes = [spec for spec in handlers if spec.process is not None]
    if not in_processes:
        return
    from multiprocessing import current_process

    if getattr(current_process(), "_inheriting", False):
        raise RuntimeUnavailable(
            "a worker was started by a process of its own that imports this program: put what "
            "runs it under `if __name__ == '__main__':`"
        )
    for spec in in_processes:
        assert spec.process is not None
        check_importable("handler", spec.function, spec.process)


def found(path: str) -> Any:
    """What a name leads to. Raises `ImportError` and `AttributeError`, and what its module does."""
    from importlib import import_module

    module, _, names = path.partition(":")
    place: Any = import_module(module)
    for name in names.split("."):
        place = getattr(place, name)
    return place


def handler_of(place: Any) -> Callable[..., Any]:
    """What is called of the object that a handler's name leads to: the object, or its handler."""
    handler: Callable[..., Any] = getattr(place, "__tenure_handler__", place)
    return handler


def _is_program(main: object) -> bool:
    """Whether a fresh interpreter can import the program that runs here."""
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return spec is not None or isinstance(file, str)
