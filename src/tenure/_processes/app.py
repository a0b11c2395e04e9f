"""From what a program calls its app to a `Worker`: the name, the function, what it returned.

Never calls anything but the one function, and opens nothing.
"""

import importlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

from tenure.errors import InvalidConfiguration
from tenure.handlers import nearest
from tenure.worker import Worker

__all__ = ["App", "check_app", "made", "worker_of"]

App = str | Callable[[], Worker | Awaitable[Worker]]

_KINDS = "a tenure.Worker, or a function without arguments, sync or async, that returns one"


def check_app(app: object) -> None:
    """Refuse what no other process could find, before there is one."""
    if isinstance(app, str):
        module, colon, attribute = app.partition(":")
        if not (module and colon and attribute):
            raise InvalidConfiguration(
                "app", app, f"must be 'module:attribute', which names {_KINDS}"
            )
        return
    if isinstance(app, Worker):
        rule = "must be a function that makes the worker, since each process needs one of its own"
        raise InvalidConfiguration("app", app, rule)
    if not callable(app):
        raise InvalidConfiguration("app", app, f"must be 'module:attribute', or {_KINDS}")
    _check_found_elsewhere(app)


def _check_found_elsewhere(app: object) -> None:
    import pickle  # not at the top: the import of the package does without it

    try:
        pickle.dumps(app)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        rule = "must be a function at the top of a module, so that other processes find it by name"
        raise InvalidConfiguration("app", app, rule) from error


def made(app: App) -> Worker | Awaitable[Worker]:
    """Find the app, and call it where it is a function. What is raised there is raised here."""
    found = _found(app) if isinstance(app, str) else app
    if isinstance(found, Worker):
        return found
    if not callable(found):
        raise InvalidConfiguration("app", app, f"must name {_KINDS}; it is {_kind(found)}")
    return cast("Worker | Awaitable[Worker]", found())


def _found(name: str) -> object:
    module_name, _, path = name.partition(":")
    found: Any = importlib.import_module(module_name)
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            raise InvalidConfiguration("app", name, _missing(found, attribute))
        found = getattr(found, attribute)
    return found


def _missing(owner: object, attribute: str) -> str:
    """The rule for a name that is not there, with those that could have been meant."""
    there = {key: value for key, value in vars(owner).items() if not key.startswith("_")}
    workers = sorted(key for key, value in there.items() if isinstance(value, Worker))
    listed = f"; there are the workers {', '.join(workers)}" if workers else ""
    name = getattr(owner, "__name__", type(owner).__name__)
    return f"must name {_KINDS}; {name} has no {attribute!r}{nearest(attribute, there)}{listed}"


def worker_of(returned: object) -> Worker:
    """What the function returned, awaited by now, if it is a worker."""
    if isinstance(returned, Worker):
        return returned
    kind = _kind(returned)
    raise InvalidConfiguration("app", returned, f"must return a tenure.Worker; it returned {kind}")


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
