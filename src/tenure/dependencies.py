"""What a function asks for beside its arguments: other functions' values, and the running job.

Read from annotations, and never called here.
"""

import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct

from tenure.binding import Need
from tenure.errors import InvalidConfiguration

__all__ = ["INJECTED", "Depends", "Parameter", "need_of", "parameters_of"]


class _Injected:
    def __repr__(self) -> str:
        return "tenure.INJECTED"


INJECTED: Final[Any] = _Injected()
"""The default of a parameter that the worker fills in: type checkers then ask nobody for it."""


class Depends:
    """Says that a parameter is given what `function` returns: `Annotated[Pool, Depends(pool)]`.

    `function` may be plain or async, and may yield the value once, to put it away afterwards. It
    may have dependencies of its own, and a parameter annotated `RunningJob`. An `async def` runs on
    the event loop, a plain `def` in a thread. With `scope="job"` (the default) it is called once
    for each attempt; with `"worker"` once for each run of a worker, when it is first needed, and
    its value is put away when the worker stops. Give the parameter the default `tenure.INJECTED`:
    type checkers then know that callers need not pass it.
    """

    __slots__ = ("function", "scope")

    def __init__(
        self, function: Callable[..., Any], *, scope: Literal["job", "worker"] = "job"
    ) -> None:
        if not callable(function):
            raise InvalidConfiguration("Depends", function, "must be given a function")
        if scope not in ("job", "worker"):
            raise InvalidConfiguration("scope", scope, 'must be "job" or "worker"')
        self.function: Callable[..., Any] = function
        self.scope: Literal["job", "worker"] = scope

    def __repr__(self) -> str:
        return f"Depends({_name(self.function)}, scope={self.scope!r})"


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of a function. `default` is `inspect.Parameter.empty` where there is none."""

    name: str
    annotation: Any
    default: Any
    depends: Depends | None = None
    is_job: bool = False


def parameters_of(function: Callable[..., Any], what: str) -> list[Parameter]:
    """The parameters with their annotations resolved. `what` names the function in errors.

    Raises `InvalidConfiguration` for `*args`, `**kwargs` and annotations that do not resolve.
    """
    try:
        hints = get_type_hints(_annotated(function), include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise InvalidConfiguration(
            what, _name(function), f"must have annotations that resolve ({error})"
        ) from None
    found: list[Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidConfiguration(
                what,
                f"*{name}",
                "must name each parameter, since a job stores them by name",
            )
        annotation = hints.get(name, Any)
        depends = _depends(annotation)
        found.append(
            Parameter(
                name=name,
                annotation=annotation,
                default=parameter.default,
                depends=depends,
                is_job=depends is None and _is_job(annotation),
            )
        )
    return found


def need_of(
    function: Callable[..., Any],
    scope: Literal["job", "worker"] = "job",
    within: tuple[Callable[..., Any], ...] = (),
) -> Need:
    """What the value of a function needs in its turn. Raises `InvalidConfiguration`."""
    what = f"the dependency {_name(function)}"
    if function in within:
        way = " -> ".join(_name(step) for step in (*within, function))
        raise InvalidConfiguration(what, way, "must not depend on itself")
    needs: dict[str, Need] = {}
    job: str | None = None
    for parameter in parameters_of(function, what):
        if parameter.is_job and scope == "job":
            job = parameter.name
        elif parameter.depends is not None:
            inner = parameter.depends
            if scope == "worker" and inner.scope == "job":
                raise InvalidConfiguration(
                    what, inner, "lives as long as the worker, and must not need what a job does"
                )
            needs[parameter.name] = need_of(inner.function, inner.scope, (*within, function))
        elif parameter.default is inspect.Parameter.empty or parameter.default is INJECTED:
            raise InvalidConfiguration(
                what,
                parameter.name,
                "must have a default for each parameter that is no dependency"
                + (", and no job with the scope 'worker'" if parameter.is_job else ""),
            )
    return Need(function=function, scope=scope, needs=needs, job=job)


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """What carries the annotations: of an instance, its `__call__`."""
    if isinstance(function, types.FunctionType | types.MethodType):
        return function
    method = "__init__" if isinstance(function, type) else "__call__"
    kind = function if isinstance(function, type) else type(function)
    found: Callable[..., Any] = getattr(kind, method)
    return found


def _depends(annotation: Any) -> Depends | None:
    if get_origin(annotation) is not Annotated:
        return None
    return next((a for a in get_args(annotation)[1:] if isinstance(a, Depends)), None)


def _is_job(annotation: Any) -> bool:
    """Whether it is `RunningJob`, or that or None; which is loaded, then."""
    module = sys.modules.get("tenure._runtime.running_job")
    if module is None:
        return False
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return module.RunningJob in get_args(annotation)
    return annotation is module.RunningJob


def _name(function: object) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
