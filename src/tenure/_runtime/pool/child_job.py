"""The job as a handler in a process sees it. What it says of itself goes through the pipe."""

import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NoReturn

from tenure._runtime.pool.terms import Logged, Order, Said
from tenure._runtime.text import checked_fraction, checked_text
from tenure.errors import Unsupported

__all__ = ["ChildJob"]


class ChildJob:
    """Has what `RunningJob` has, but for `complete_within`, whose connection is the worker's."""

    __slots__ = ("_lock", "_open", "_order", "_say", "cancelled", "payload")

    def __init__(self, order: Order, payload: Any, say: Callable[[Said | Logged], None]) -> None:
        self._order = order
        self._say = say
        self._lock = threading.Lock()
        self._open = True
        self.payload = payload
        self.cancelled = False  # always: a process that should stop is killed

    @property
    def id(self) -> str:
        return self._order.id

    @property
    def name(self) -> str:
        return self._order.name

    @property
    def queue(self) -> str:
        return self._order.queue

    @property
    def attempt(self) -> int:
        """Which start of the handler this is, from 1."""
        return self._order.attempt

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._order.headers)

    @property
    def fence(self) -> int:
        """The serial of this claim, for fencing one's own writes."""
        return self._order.fence

    def set_progress(self, fraction: float, note: str | None = None) -> Awaitable[None]:
        """As `RunningJob.set_progress`."""
        self._check_supported()
        text = None if note is None else checked_text("note", note)
        return self._tell(Said(checked_fraction(fraction), text))

    def log(self, text: str) -> Awaitable[None]:
        """As `RunningJob.log`."""
        self._check_supported()
        return self._tell(Logged(checked_text("text", text)))

    def complete_within(self, connection: object, result: Any = None) -> NoReturn:
        """Not from a process: it raises `Unsupported`."""
        raise Unsupported("complete_within from a handler in a process")

    def close(self) -> None:
        """The handler has ended: what a thread of it still says is not of the next job."""
        with self._lock:
            self._open = False

    def _check_supported(self) -> None:
        if not self._order.progress:
            raise Unsupported("progress")

    def _tell(self, said: Said | Logged) -> Awaitable[None]:
        with self._lock:
            if self._open:
                self._say(said)
        return _TURN

    def __repr__(self) -> str:
        return f"<RunningJob {self.id} {self.name!r} attempt {self.attempt}>"


class _Turn:
    """To be awaited by who likes: one turn of the event loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_TURN = _Turn()
