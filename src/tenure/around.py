"""What users put around dispatches: middleware that may change calls, look at handles, or refuse.

It runs before anything is checked or stored. Once the jobs are stored, nothing that it does can
make the dispatch fail: its caller would dispatch again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from tenure.call import Call
from tenure.errors import InvalidConfiguration
from tenure.job_handle import JobHandle

__all__ = ["DispatchMiddleware", "check_middleware", "surrounded"]

Store = Callable[[Sequence[Call]], Awaitable[Sequence[JobHandle[Any]]]]

DispatchMiddleware = Callable[[Sequence[Call], Store], Awaitable[Sequence[JobHandle[Any]]]]
"""`async def middleware(calls, store)`: returns what `await store(calls)` does."""

_log = logging.getLogger("tenure.dispatch")


def check_middleware(given: Iterable[DispatchMiddleware]) -> tuple[DispatchMiddleware, ...]:
    """Refuse what cannot be called."""
    middleware = tuple(given)
    for each in middleware:
        if not callable(each):
            raise InvalidConfiguration("middleware", each, "must be async functions")
    return middleware


async def surrounded(
    middleware: tuple[DispatchMiddleware, ...], calls: Sequence[Call], store: Store
) -> Sequence[JobHandle[Any]]:
    """Store the calls through the middleware, the first outermost; one handle for each call.

    What it raises before the jobs are stored is raised, and nothing is stored. What it raises
    afterwards is logged, and the handles are returned. Raises `InvalidConfiguration` where it
    returned without having stored them.
    """
    stored: Sequence[JobHandle[Any]] | None = None

    async def note(changed: Sequence[Call]) -> Sequence[JobHandle[Any]]:
        nonlocal stored
        if len(changed) != len(calls):
            rule = f"must pass on each of the {len(calls)} calls"
            raise InvalidConfiguration("middleware", len(changed), rule)
        stored = await store(changed)
        return stored

    step: Store = note
    for around in reversed(middleware):
        step = partial(_call, around, step)
    try:
        await step(calls)
    except Exception:
        if stored is None:
            raise
        _log.exception("middleware failed after the jobs were stored", extra={"jobs": len(calls)})
    if stored is None:
        rule = "must call store(calls), or raise to refuse the dispatch"
        raise InvalidConfiguration("middleware", None, rule)
    return stored


async def _call(around: DispatchMiddleware, step: Store, calls: Sequence[Call]) -> Any:
    return await around(calls, step)
