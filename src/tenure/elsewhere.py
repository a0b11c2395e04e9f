"""Calls on another thread's event loop, which may end at any moment.

Waits for no loop that does not turn any more, and never takes the end of that loop for a
cancellation of the caller.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from tenure.clock import Clock

__all__ = ["call_elsewhere"]

_LOOK = 0.1  # seconds between looks whether the loop still turns


async def call_elsewhere(
    loop: asyncio.AbstractEventLoop, call: Callable[[], Coroutine[Any, Any, None]], clock: Clock
) -> bool:
    """Run `call()` on `loop` and wait for it; False where the loop ended before that was done.

    Raises what the call raises. When the caller is cancelled, the call goes on.
    """
    ended: Future[bool] = Future()
    ended.set_running_or_notify_cancel()  # who waits may be cancelled, the call may not
    running: set[asyncio.Task[None]] = set()

    def begin() -> None:
        task = loop.create_task(call())
        running.add(task)
        task.add_done_callback(end)

    def end(task: asyncio.Task[None]) -> None:
        running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            ended.set_result(not task.cancelled())
        else:
            ended.set_exception(error)

    try:
        loop.call_soon_threadsafe(begin)
    except RuntimeError:
        return False  # it is closed
    waiting = asyncio.wrap_future(ended)
    while not await clock.wait(waiting, _LOOK):
        if not loop.is_running():
            return False
    return waiting.result()
