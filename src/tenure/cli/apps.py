"""From `module:attribute` on the command line to a worker, or to what is wrong with it.

The attribute is a `Worker`, a `Queue` whose tasks are in the same module, or a function without
arguments, sync or async, that returns one of these. Runs the code of the app and opens no store.
"""

import asyncio
import importlib
import inspect
import os
import sys
from collections.abc import Awaitable, Iterable
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from tenure.errors import QueueError
from tenure.queue import Queue
from tenure.tasks import Tasks
from tenure.worker import Worker

__all__ = ["AppError", "parts_of", "worker_in", "worker_of"]

_KINDS = "a Worker, a Queue, or a function without arguments that returns one"


class AppError(QueueError):
    """The app cannot be had; `remedy` is what to do about it."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.remedy = remedy


def worker_in(name: str) -> Worker | Awaitable[Worker]:
    """The worker that the name leads to. Raises `AppError`."""
    module_name, path = parts_of(name)
    module = _imported(module_name)
    found = _attribute(module, path)
    if inspect.isroutine(found) or inspect.isclass(found):
        found = _called(name, found)
    if inspect.isawaitable(found):
        return _awaited(name, module, found)
    return _worker(name, module, found)


def parts_of(name: str) -> tuple[str, str]:
    """The module and the attribute that the name of an app is made of. Raises `AppError`."""
    module, _, path = name.partition(":")
    if not (module and path):
        raise AppError(
            f"{name!r} names no app: it must be module:attribute", "write it as in shop.jobs:worker"
        )
    return module, path


def worker_of(name: str) -> Worker:
    """The same, awaited on an event loop of its own where that is needed. Blocks."""
    found = worker_in(name)
    return asyncio.run(_waited_for(found)) if inspect.isawaitable(found) else found


async def _waited_for(found: Awaitable[Worker]) -> Worker:
    return await found


def _imported(name: str) -> ModuleType:
    """Import from the working directory first, as `python -m` does."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            raise AppError(
                f"there is no module {missing!r}",
                "run it in the folder that has it, or install the package it is in",
            ) from error
        remedy = f"install what brings {missing}, in the environment that runs this"
        raise AppError(f"{name} imports {missing!r}, which is not installed", remedy) from error
    except (Exception, SystemExit) as error:
        raise _raised(f"importing {name}", error) from error


def _attribute(module: ModuleType, path: str) -> Any:
    found: Any = module
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            there = ", ".join(_candidates(module))
            known = [key for key in dir(found) if not key.startswith("_")]
            near = get_close_matches(attribute, known, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise AppError(
                f"{module.__name__} has no {path!r}{meant}",
                f"it has: {there}" if there else f"put there {_KINDS}",
            )
        found = getattr(found, attribute)
    return found


def _candidates(module: ModuleType) -> Iterable[str]:
    """What in a module could be meant."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("_"):
            continue
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        if isinstance(value, Worker | Queue) or (own and not inspect.signature(value).parameters):
            yield name


def _called(name: str, function: Any) -> Any:
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise _raised(f"calling {name}", error) from error


async def _awaited(name: str, module: ModuleType, found: Any) -> Worker:
    try:
        made = await found
    except (Exception, SystemExit) as error:
        raise _raised(f"calling {name}", error) from error
    return _worker(name, module, made)


def _raised(doing: str, error: BaseException) -> AppError:
    text = str(error)
    return AppError(
        f"{doing} raised {type(error).__name__}{f': {text}' if text else ''}",
        "correct the app, and try it with `tenure check APP --debug`",
    )


def _worker(name: str, module: ModuleType, found: object) -> Worker:
    if isinstance(found, Worker):
        return found
    if not isinstance(found, Queue):
        kind = "None" if found is None else f"of type {type(found).__name__}"
        raise AppError(f"{name} must be {_KINDS}; it is {kind}", "name another attribute")
    sets = [
        value
        for value in vars(module).values()
        if isinstance(value, Tasks) and value.queue in (None, found)
    ]
    if not sets:
        raise AppError(
            f"{name} is a Queue, and {module.__name__} has no tasks for it",
            "declare tasks there, or name a Worker",
        )
    return Worker(found, tasks=list(dict.fromkeys(sets)))
