"""What users put around handlers: middleware, hooks, other dependencies for tests. Values only."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from tenure._runtime.running_job import RunningJob
from tenure.binding import Need

__all__ = ["Hook", "Middleware", "Surroundings"]

Middleware = Callable[[RunningJob, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""`async def middleware(job, call)`: around each attempt; returns what `await call()` does."""

Hook = Callable[[], object]
"""A function without arguments, async or plain."""


class Surroundings(Struct, frozen=True, kw_only=True):
    """Of one worker; the first middleware is the outermost."""

    middleware: tuple[Middleware, ...] = ()
    on_start: tuple[Hook, ...] = ()
    on_stop: tuple[Hook, ...] = ()
    overrides: Mapping[Callable[..., Any], Need] = {}
