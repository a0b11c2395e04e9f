"""Calls handlers: on the loop, in a thread, in a process; with what they need, through middleware.

What is raised leaves as it was raised. It decides nothing about the job, and must not write.
"""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tenure._runtime.completer import Completer
from tenure._runtime.current import CURRENT
from tenure._runtime.needs import Making
from tenure._runtime.progress import ProgressWriter
from tenure._runtime.resources import Resources
from tenure._runtime.running_job import RunningJob
from tenure._runtime.slots import Attempt
from tenure._runtime.surroundings import Middleware
from tenure._runtime.threads import Threads
from tenure.binding import Binding

if TYPE_CHECKING:
    from tenure._runtime.pool.calls import ProcessCalls

__all__ = ["Invocations", "RaisedInThread"]


class RaisedInThread(BaseException):
    """Carries what a coroutine cannot raise as it is, or would mean something else if it did."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Invocations:
    """The calls of one worker. All of it runs on the worker's event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        completer: Completer,
        progress: ProgressWriter,
        middleware: tuple[Middleware, ...],
        resources: Resources,
        processes: "ProcessCalls | None",
        aborting: Callable[[], bool],
    ) -> None:
        self._threads = Threads(loop, "tenure-handler")
        self._completer = completer
        self._progress = progress
        self._middleware = middleware
        self._resources = resources
        self._processes = processes
        self._aborting = aborting
        self._lock = threading.Lock()

    def begin(self, attempt: Attempt, payload: Any) -> Awaitable[Any]:
        """The call, to be awaited in the task of the attempt.

        Raises `SerializationError` where the payload is not what the handler takes; then it is not
        called.
        """
        spec = attempt.spec
        call: Callable[[], Awaitable[Any]]
        CURRENT.set(functools.partial(self._job, attempt, payload))
        if spec.binding is not None:
            arguments = spec.binding.arguments(payload)
            attempt.called = True
            call = functools.partial(self._bound, attempt, payload, spec.binding, arguments)
        elif self._middleware or spec.process is not None:
            attempt.called = True
            call = functools.partial(self._plain, attempt, payload)
        else:
            attempt.called = True
            return self._plain(attempt, payload)
        if self._processes is not None and spec.process is not None:
            job = functools.partial(self._job, attempt, payload)
            call = functools.partial(self._processes.call, attempt, job)
        for around in reversed(self._middleware):
            call = functools.partial(around, self._job(attempt, payload), call)
        return call()

    def _plain(self, attempt: Attempt, payload: Any) -> Awaitable[Any]:
        spec = attempt.spec
        arguments = (payload, self._job(attempt, payload)) if spec.wants_job else (payload,)
        if spec.is_async:
            awaited: Awaitable[Any] = spec.function(*arguments)
            return awaited
        return self._in_thread(attempt, spec.function, arguments)

    async def _bound(
        self, attempt: Attempt, payload: Any, binding: Binding, arguments: dict[str, Any]
    ) -> Any:
        """Call a function that takes its arguments by name, and what it needs."""
        if binding.job is not None:
            arguments = {**arguments, binding.job: self._job(attempt, payload)}
        if not binding.needs:
            return await self._named(attempt, arguments)
        async with AsyncExitStack() as stack:
            making = Making(stack, functools.partial(self._job, attempt, payload), self._resources)
            needs = await making.all(binding.needs)
            return await self._named(attempt, {**arguments, **needs})

    async def _named(self, attempt: Attempt, arguments: dict[str, Any]) -> Any:
        function = attempt.spec.function
        if attempt.spec.is_async:
            return await function(**arguments)
        return await self._in_thread(attempt, functools.partial(function, **arguments), ())

    async def _in_thread(
        self, attempt: Attempt, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Any:
        """Call a plain function in a thread, and await what it may return to be awaited."""
        answer = self._threads.call(function, arguments, contextvars.copy_context())
        attempt.in_thread = True
        while True:
            try:
                result = await asyncio.shield(answer)
                break
            except asyncio.CancelledError:
                # A thread cannot be interrupted: go on waiting for what it really does.
                if self._aborting():
                    raise
        attempt.in_thread = False
        if isinstance(result.error, Exception) and not isinstance(result.error, StopIteration):
            raise result.error
        if result.error is not None:
            raise RaisedInThread(result.error)
        if inspect.isawaitable(result.value):
            return await result.value
        return result.value

    def _job(self, attempt: Attempt, payload: Any) -> RunningJob:
        """The job as its handler sees it, made when it is first asked for, in any thread."""
        if attempt.job is None:
            with self._lock:
                if attempt.job is None:
                    attempt.progress = self._progress.begin(attempt.claim)
                    job = RunningJob(
                        attempt.claim, payload, self._completer.complete, attempt.progress
                    )
                    job.cancelled = attempt.stop is not None
                    if attempt.task is None:  # asked for by what has outlived its attempt
                        attempt.progress.drop()
                    attempt.job = job
        return attempt.job

    def close(self) -> None:
        """Nothing will be called any more."""
        self._threads.close()
