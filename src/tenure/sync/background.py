"""The one event loop of a process on which blocking calls are run, in a thread of its own.

It is started by the first call and ended when the last queue that was used on it is closed, else by
the end of the program. It stands still while the process is forked, so that the child finds no lock
held that it had. It must never outlive a fork, keep an interpreter alive, or let a thread that runs
an event loop wait for it.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from tenure.errors import RuntimeUnavailable

__all__ = ["BACKGROUND", "Background", "User"]

T = TypeVar("T")

_AT_EXIT = 1.0  # seconds that the end of a program may be held up in all
_AT_FORK = 1.0  # seconds that a fork waits for a loop that somebody blocks


class User(Protocol):
    """What is used on the loop until it is closed, at the latest when the program ends."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> Awaitable[None]: ...


class Background:
    """Runs coroutines for other threads. Any number of threads may call at once."""

    def __init__(self) -> None:
        self._turning: _Turning | None = None
        self._lock = threading.Lock()
        self._users: WeakSet[User] = WeakSet()
        self._calls = 0
        self._forking: int | None = None  # the thread that does
        # Kept for ever: dropping what a fork has copied would close what the parent uses.
        self._inherited: list[_Turning] = []
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_in_parent,
                after_in_child=self._after_in_child,
            )

    def call(self, user: User, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run what `begin` gives on the loop and wait for its end; raises what it raises.

        A wait that is interrupted (`KeyboardInterrupt`) cancels it. Raises `RuntimeUnavailable` in
        a thread that runs an event loop, and begins nothing then.
        """
        refuse_on_a_loop()
        with self._used(user) as turning:
            future = asyncio.run_coroutine_threadsafe(begin(), turning.loop)
            try:
                return future.result()
            except CancelledError:
                raise RuntimeUnavailable(
                    "the call was cancelled, since the program is ending"
                ) from None
            finally:
                future.cancel()  # does nothing to one that has ended

    @contextmanager
    def _used(self, user: User) -> "Generator[_Turning]":
        """The loop, which turns until the block ends at least."""
        with self._lock:
            if self._turning is None:
                self._turning = _Turning()
            turning = self._turning
            self._calls += 1
            self._users.add(user)
        try:
            yield turning
        finally:
            with self._lock:
                ended = None
                if turning is self._turning:  # not so in the child of a fork within the call
                    self._calls -= 1
                    if user.closed:
                        self._users.discard(user)
                    ended = self._given_up()
            if ended is not None:
                ended.stop()

    def _given_up(self) -> "_Turning | None":
        """The loop, if nobody needs it any more; with the lock."""
        if self._calls or self._users:
            return None
        turning, self._turning = self._turning, None
        return turning

    def _before_fork(self) -> None:
        """Let the loop stand still where it holds no lock that nobody would free in the child.

        Those of others above all, which cannot be replaced there: of TLS, which a connection takes
        even when it does not use it, of a module that is being imported, of users' middleware.
        """
        self._lock.acquire()
        self._forking = threading.get_ident()
        if self._turning is not None:
            self._turning.stand()

    def _after_in_parent(self) -> None:
        if self._forking != threading.get_ident():
            return  # the fork had begun when these hooks were made
        self._forking = None
        if self._turning is not None:
            self._turning.go_on()
        self._lock.release()

    def _after_in_child(self) -> None:
        """Only the thread that forked is left, and whoever held the lock is not."""
        if self._turning is not None:
            self._inherited.append(self._turning)
        self._turning = self._forking = None
        self._lock = threading.Lock()
        self._users = WeakSet()
        self._calls = 0

    def _end(self) -> None:
        with self._lock:
            turning, self._turning = self._turning, None
            users = list(self._users)
        if turning is not None:
            turning.stop(users)


class _Turning:
    """An event loop that turns in its own daemon thread."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._going_on = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tenure-sync", daemon=True)
        self._thread.start()
        self._ready.wait()

    def stop(self, users: "list[User] | None" = None) -> None:
        """Close these users, end the loop and wait for its thread; for a moment only."""
        asyncio.run_coroutine_threadsafe(self._close(users or []), self.loop)
        self._thread.join(_AT_EXIT)

    def stand(self) -> None:
        """Have the loop stand still until `go_on`, at the end of what it does now.

        Waits for that, for a moment only. Does nothing in the loop's own thread.
        """
        if threading.current_thread() is self._thread:
            return
        stands, self._going_on = threading.Event(), threading.Event()
        with suppress(RuntimeError):  # it has ended
            self.loop.call_soon_threadsafe(_stand, stands, self._going_on)
            stands.wait(_AT_FORK)

    def go_on(self) -> None:
        self._going_on.set()

    async def _close(self, users: list[User]) -> None:
        try:
            await asyncio.gather(*(user.close() for user in users), return_exceptions=True)
        finally:
            self._stopped.set()

    def _run(self) -> None:
        asyncio.run(self._turn())

    async def _turn(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._ready.set()
        await self._stopped.wait()


def _stand(stands: threading.Event, going_on: threading.Event) -> None:
    stands.set()
    going_on.wait()


def refuse_on_a_loop() -> None:
    """Raise `RuntimeUnavailable` where a blocking call would hold up an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeUnavailable(
        "a call of queue.sync blocks its thread, and this one runs an event loop that would stand "
        "still: await the verb of the queue itself, such as `await queue.dispatch(...)`"
    )


# Of the process, since a program has one end and a fork takes all of it along. Made by the import,
# of which there is one whatever number of threads come first; its hooks cannot be taken back.
BACKGROUND = Background()
