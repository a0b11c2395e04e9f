"""An error that stands for one that was raised in another process, for retry policies to judge.

Made from the names of its classes, and of those that are loaded here: nothing is imported, and no
constructor is called. So it has the class and the text of the error, and no other attribute.
"""

import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["class_names", "stand_in"]

_MOST = 100  # classes of one error
_NEVER = (StopIteration,)  # no coroutine can raise it


def class_names(error: BaseException) -> tuple[str, ...]:
    """`module:qualname` of each class of an error, its own first."""
    return tuple([_name(kind) for kind in type(error).__mro__[:_MOST]])


def _name(kind: type) -> str:
    # The program of the worker has another name in its processes.
    module = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__
    return f"{module}:{kind.__qualname__}"


def stand_in(classes: Sequence[str], text: str) -> BaseException:
    """An instance of the first of these classes that is known here and can be made."""
    for name in classes:
        kind = _loaded(name)
        if kind is not None and (error := _made(kind, text)) is not None:
            return error
    return Exception(text)


def _loaded(name: str) -> type[BaseException] | None:
    module, _, path = name.partition(":")
    place: Any = sys.modules.get(module)
    for attribute in path.split("."):
        place = getattr(place, attribute, None)
    if isinstance(place, type) and issubclass(place, BaseException) and place not in _NEVER:
        return place
    return None


def _made(kind: type[BaseException], text: str) -> BaseException | None:
    try:
        error = kind.__new__(kind, text)
        error.args = (text,)
    except Exception:  # it is made in a way of its own; its next class will do
        return None
    return error if isinstance(error, kind) else None
