"""How an answer gets from a thread of the store to whoever waits for it.

Answers for one event loop travel together, in one call of that loop: waking a loop costs more than
the answer. Never raises into the thread of the store; an answer that nobody waits for is dropped.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol

__all__ = ["Call", "LoopReply", "Reply", "ThreadReply", "deliver"]


class Reply(Protocol):
    """Where the answer of one call goes."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop on which `settle` must be called; None: anywhere."""
        ...

    def wanted(self) -> bool:
        """Whether anybody still waits; a call that nobody waits for need not be made."""
        ...

    def settle(self, result: Any, error: Exception | None) -> None: ...


class LoopReply:
    """Answers a future."""

    __slots__ = ("future", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: asyncio.AbstractEventLoop | None = loop
        self.future: asyncio.Future[Any] = loop.create_future()

    def wanted(self) -> bool:
        return not self.future.cancelled()

    def settle(self, result: Any, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class ThreadReply:
    """Answers a blocked thread."""

    __slots__ = ("_answered", "error", "loop", "result")

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.result: Any = None
        self.error: Exception | None = None
        self._answered = threading.Event()

    def wanted(self) -> bool:
        return True

    def settle(self, result: Any, error: Exception | None) -> None:
        self.result, self.error = result, error
        self._answered.set()

    def wait(self, timeout: float) -> bool:
        """Block for real time: the thread that answers lives in it too."""
        return self._answered.wait(timeout)


class Call:
    """An operation on its way through a clerk, and then its answer."""

    __slots__ = ("error", "operation", "reply", "result")

    def __init__(self, operation: Callable[[Any], Any], reply: Reply) -> None:
        self.operation: Callable[[Any], Any] = operation
        self.reply: Reply = reply
        self.result: Any = None
        self.error: Exception | None = None

    def settle(self) -> None:
        self.reply.settle(self.result, self.error)


def deliver(calls: Iterable[Call]) -> None:
    """Hand out the answers, with one call to each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Call]] = {}
    for call in calls:
        loop = call.reply.loop
        if loop is None:
            call.settle()
        else:
            by_loop.setdefault(loop, []).append(call)
    for loop, answered in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle_all, answered)
        except RuntimeError:
            continue  # the loop was closed: nobody waits any more


def _settle_all(calls: list[Call]) -> None:
    for call in calls:
        call.settle()
