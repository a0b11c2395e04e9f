"""Makes what handlers need: calls functions, enters generators, and sees that each is put away.

An `async def` runs on the event loop, a plain `def` in a thread, as handlers do. What is made for
an attempt is put away at its end, whatever that is; a generator is thrown what the handler raised.
"""

import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Protocol

from tenure._runtime.running_job import RunningJob
from tenure._runtime.threads import Threads
from tenure.binding import Need

__all__ = ["Making", "Shared", "in_thread", "make"]


class Shared(Protocol):
    """What the attempts of a worker share."""

    threads: Threads

    def instead(self, need: Need) -> Need:
        """What is made in the place of a need."""
        ...

    async def get(self, need: Need) -> Any:
        """The value of a need of the worker's scope."""
        ...


class Making:
    """What is made for one attempt: each function once, whoever needs it."""

    def __init__(
        self, stack: AsyncExitStack, job: Callable[[], RunningJob], shared: Shared
    ) -> None:
        self._stack = stack
        self._job = job
        self._shared = shared
        self._made: dict[Callable[..., Any], Any] = {}

    async def all(self, needs: Mapping[str, Need]) -> dict[str, Any]:
        instead = self._shared.instead
        return {name: await self._one(instead(need)) for name, need in needs.items()}

    async def _one(self, need: Need) -> Any:
        if need.scope == "worker":
            return await self._shared.get(need)
        if need.function not in self._made:
            arguments = await self.all(need.needs)
            if need.job is not None:
                arguments[need.job] = self._job()
            threads = self._shared.threads
            self._made[need.function] = await make(need.function, arguments, self._stack, threads)
        return self._made[need.function]


async def make(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    stack: AsyncExitStack,
    threads: Threads,
) -> Any:
    """The value of one function; what it yields is put away by the stack."""
    call = functools.partial(function, **arguments)
    if inspect.isasyncgenfunction(function):
        return await stack.enter_async_context(asynccontextmanager(function)(**arguments))
    if inspect.iscoroutinefunction(function):
        return await call()
    if inspect.isgeneratorfunction(function):
        return await stack.enter_async_context(_InThread(call, threads))
    return await in_thread(threads, call)


async def in_thread(threads: Threads, call: Callable[[], Any]) -> Any:
    """Call a plain function in a thread. What it raises is raised, `StopIteration` as an error."""
    result = await threads.call(call, (), contextvars.copy_context())
    if result.error is not None:
        raise result.error
    return result.value


class _InThread:
    """A plain generator as a context, each step of it in a thread."""

    def __init__(self, call: Callable[[], Any], threads: Threads) -> None:
        self._context = contextmanager(call)()
        self._threads = threads

    async def __aenter__(self) -> Any:
        return await in_thread(self._threads, self._context.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        leave = functools.partial(self._context.__exit__, kind, error, trace)
        swallowed: bool | None = await in_thread(self._threads, leave)
        return swallowed
