"""Which function runs for which name, and how. Pure bookkeeping: nothing is called here."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from tenure.binding import Binding
from tenure.errors import InvalidConfiguration

__all__ = ["ErrorRule", "Handler", "HandlerSpec", "Handlers", "RetryRule", "nearest"]

Handler = Callable[..., Any]
"""`handler(payload)` or `handler(payload, job)`, plain or async."""


class RetryRule(Protocol):
    """What a retry policy answers; `RetryPolicy` is one."""

    @property
    def max_attempts(self) -> int: ...

    def retries(self, error: BaseException) -> bool: ...

    def delay(self, attempt: int) -> float: ...


@runtime_checkable
class ErrorRule(Protocol):
    """A retry policy that may look at the error too; then `delay` is not asked."""

    def delay_after(self, attempt: int, error: BaseException) -> float | timedelta | None:
        """How long to wait after this failure; None gives up."""
        ...


class HandlerSpec(Struct, frozen=True, kw_only=True):
    """A registered handler. `timeout` is in seconds; None leaves it to the worker.

    `process` is the name under which a process imports it; None runs it here.
    """

    name: str
    function: Handler
    wants_job: bool
    is_async: bool
    retry: RetryRule | None
    timeout: float | None
    process: str | None = None
    binding: Binding | None = None


class Handlers:
    """The handlers of one worker, by name."""

    def __init__(self) -> None:
        self._specs: dict[str, HandlerSpec] = {}

    def add(
        self,
        name: str,
        function: Handler,
        *,
        retry: RetryRule | None,
        timeout: float | None,
        replace: bool,
        process: str | None = None,
        binding: Binding | None = None,
    ) -> None:
        """Register a handler; a taken name is refused unless `replace`.

        With a `binding` it is called with arguments by name.
        """
        if name in self._specs and not replace:
            raise InvalidConfiguration(
                "name", name, "must not be registered already (pass replace=True to replace it)"
            )
        _check_retry(name, retry)
        self._specs[name] = HandlerSpec(
            name=name,
            function=function,
            wants_job=binding is None and _wants_job(name, function),
            is_async=_is_async(function),
            retry=retry,
            timeout=timeout,
            process=process,
            binding=binding,
        )

    def snapshot(self) -> Mapping[str, HandlerSpec]:
        """The handlers as they are now; later registrations do not show."""
        return dict(self._specs)


def nearest(name: str, known: Iterable[str]) -> str:
    """A half-sentence that suggests a known name, or nothing."""
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _check_retry(name: str, retry: object) -> None:
    """Refuse what would fail only when a job of it does, such as a number or the class itself."""
    if retry is None:
        return
    bound = getattr(retry, "max_attempts", None)
    whole = isinstance(bound, int) and not isinstance(bound, bool) and bound >= 1
    calls = all(callable(getattr(retry, verb, None)) for verb in ("retries", "delay"))
    if not (whole and calls):
        raise InvalidConfiguration(
            "retry", retry, f"for {name!r} must be a RetryPolicy(...), or an object like one"
        )


def _is_async(function: Handler) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    # An instance whose class has an async __call__; of its class, since a class may be a handler.
    call = getattr(type(function), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _wants_job(name: str, function: Handler) -> bool:
    if not callable(function):
        raise InvalidConfiguration("handler", function, f"for {name!r} must be callable")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False  # a builtin without a signature: it gets the payload alone
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    needed = [p for p in positional if p.default is p.empty]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if not (positional or many) or len(needed) > 2 or keywords:
        raise InvalidConfiguration(
            "handler", function, f"for {name!r} must take (payload) or (payload, job)"
        )
    return many or len(needed) == 2 or (len(positional) > 1 and positional[1].name == "job")
