"""What lives as long as one run of a worker: its hooks, and what all of its handlers share.

Started before the first claim, put away after the last handler, in the reverse order. It must not
know of jobs.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from msgspec.structs import replace

from tenure._runtime.failures import describe
from tenure._runtime.needs import in_thread, make
from tenure._runtime.report import Reporter
from tenure._runtime.surroundings import Hook, Surroundings
from tenure._runtime.threads import Threads
from tenure.binding import Need
from tenure.errors import HookFailed, RuntimeUnavailable

__all__ = ["Resources"]


class Resources:
    """The hooks and the shared needs of one run. Used on the event loop that made it."""

    def __init__(self, surroundings: Surroundings, reporter: Reporter) -> None:
        self._on_start = surroundings.on_start
        self._on_stop = surroundings.on_stop
        self._overrides = surroundings.overrides
        self._reporter = reporter
        self._stack = AsyncExitStack()
        self._made: dict[Callable[..., Any], asyncio.Future[Any]] = {}
        self._started = False
        self.threads = Threads(asyncio.get_running_loop(), "tenure-needs")

    @property
    def used(self) -> bool:
        """Whether there is anything to put away."""
        return bool(self._made or (self._started and self._on_stop) or self.threads.any)

    def instead(self, need: Need) -> Need:
        """What is made in the place of a need."""
        other = self._overrides.get(need.function)
        return need if other is None else replace(other, scope=need.scope)

    async def start(self) -> None:
        """Call the start hooks in order. Raises `RuntimeUnavailable` when one of them fails."""
        self._started = True
        for hook in self._on_start:
            try:
                await self._call(hook)
            except Exception as error:
                raise RuntimeUnavailable(
                    f"the worker did not start: its on_start hook {_name(hook)} raised "
                    f"{describe(error)}"
                ) from error

    async def get(self, need: Need) -> Any:
        """A shared value, made by whoever needs it first; a failure is tried anew by the next."""
        made = self._made.get(need.function)
        if made is None:
            made = self._made[need.function] = asyncio.ensure_future(self._make(need))
            made.add_done_callback(_look)
        try:
            return await asyncio.shield(made)
        except Exception:
            if self._made.get(need.function) is made:
                del self._made[need.function]
            raise

    async def _make(self, need: Need) -> Any:
        arguments = {
            name: await self.get(self.instead(inner)) for name, inner in need.needs.items()
        }
        return await make(need.function, arguments, self._stack, self.threads)

    async def close(self) -> None:
        """Put away what is shared, then call the stop hooks, the last first; report what fails."""
        for task in self._made.values():
            task.cancel()
        await self._contained("a shared dependency", self._stack.aclose)
        if self._started:
            for hook in reversed(self._on_stop):
                await self._contained(f"the on_stop hook {_name(hook)}", self._calling(hook))
        self.threads.close()

    def _calling(self, hook: Hook) -> Callable[[], Awaitable[object]]:
        return lambda: self._call(hook)

    async def _call(self, hook: Hook) -> object:
        if inspect.iscoroutinefunction(hook):
            return await hook()
        answer = await in_thread(self.threads, hook)
        return await answer if inspect.isawaitable(answer) else answer

    async def _contained(self, what: str, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except Exception as error:
            failed = HookFailed(what, describe(error))
            failed.__cause__ = error
            self._reporter.report(failed)


def _name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


def _look(made: "asyncio.Future[Any]") -> None:
    """Whoever needs it hears of a failure; where nobody waits any longer, that is no news."""
    if not made.cancelled():
        made.exception()
