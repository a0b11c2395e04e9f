"""Threads for plain `def` handlers: bounded, daemon, woken and answered in batches.

Unlike the standard executor's, these threads never keep the interpreter alive, and an idle one is
reused. Results come back as values, so that a handler may raise anything, `StopIteration` too.
"""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context
from queue import SimpleQueue
from typing import Any

__all__ = ["ThreadResult", "Threads"]


class ThreadResult:
    """What the call returned, or what it raised."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any, error: BaseException | None) -> None:
        self.value = value
        self.error = error


_Call = tuple[Callable[..., Any], tuple[Any, ...], Context, "asyncio.Future[ThreadResult]"]
_Answer = tuple["asyncio.Future[ThreadResult]", ThreadResult]


class Threads:
    """Runs calls in at most as many threads as there are calls at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._lock = threading.Lock()
        self._answers: list[_Answer] = []

    def call(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], context: Context
    ) -> "asyncio.Future[ThreadResult]":
        """Start the call in a thread; the future gets a `ThreadResult` and is never failed."""
        answer: asyncio.Future[ThreadResult] = self._loop.create_future()
        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            name = f"{self._name}-{self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        self._calls.put((function, arguments, context, answer))
        return answer

    @property
    def any(self) -> bool:
        """Whether a thread was ever started."""
        return self._threads > 0

    def close(self) -> None:
        """Let each thread end when it is idle; one that is stuck in a call ends after it."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, arguments, context, answer = call
            result = _run(function, arguments, context)
            del call, function, arguments, context
            with self._lock:
                self._answers.append((answer, result))
                first = len(self._answers) == 1
            del answer, result
            if first:  # the others ride with this wake-up
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:
                    return  # the loop is closed: nobody waits for an answer

    def _deliver(self) -> None:
        """On the loop: hand out everything that has been answered by now."""
        with self._lock:
            answers, self._answers = self._answers, []
        self._busy -= len(answers)
        for answer, result in answers:
            if not answer.done():
                answer.set_result(result)


def _run(
    function: Callable[..., Any], arguments: tuple[Any, ...], context: Context
) -> ThreadResult:
    try:
        return ThreadResult(context.run(function, *arguments), None)
    except BaseException as error:  # the executor's one catch, on the other side of the thread
        return ThreadResult(None, error)
