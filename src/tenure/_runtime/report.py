"""Where the runtime says what happened: errors into the handle's buffer, events to observers.

Nothing here can fail a job: an observer that raises is logged and forgotten.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from tenure._runtime.log import log_event, logs_jobs
from tenure.errors import QueueError
from tenure.events import ErrorReported, Event, Observer

__all__ = ["ErrorBuffer", "Reporter"]

_BUFFER = 256

logger = logging.getLogger("tenure.worker")


class ErrorBuffer:
    """The errors that nobody has read yet, at most 256; what comes when it is full is dropped."""

    def __init__(self) -> None:
        self._errors: deque[QueueError] = deque()
        self._readers: deque[asyncio.Future[QueueError | None]] = deque()
        self._closed = False
        self.dropped: int = 0

    def put(self, error: QueueError) -> bool:
        """Hand the error to a waiting reader or keep it; False when it was dropped."""
        if self._hand_over(error):
            return True
        if len(self._errors) >= _BUFFER:
            self.dropped += 1
            return False
        self._errors.append(error)
        return True

    def _hand_over(self, error: QueueError) -> bool:
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(error)
                return True
        return False

    def take(self) -> QueueError | None:
        return self._errors.popleft() if self._errors else None

    async def next(self) -> QueueError | None:
        if self._errors or self._closed:
            return self.take()
        reader: asyncio.Future[QueueError | None] = asyncio.get_running_loop().create_future()
        self._readers.append(reader)
        try:
            return await reader
        except asyncio.CancelledError:
            # An error may have been handed over in the very turn in which the reader gave up. It
            # goes to the next reader; where nobody waits it is still the oldest.
            if reader.done() and not reader.cancelled():
                error = reader.result()
                if error is not None and not self._hand_over(error):
                    self._errors.appendleft(error)
            raise

    def close(self) -> None:
        """Nothing more will come: waiting readers get None."""
        self._closed = True
        for reader in self._readers:
            if not reader.done():
                reader.set_result(None)
        self._readers.clear()


class Reporter:
    """Hands errors to the buffer and events to the log and the observers."""

    def __init__(self, buffer: ErrorBuffer, observers: Sequence[Observer]) -> None:
        self._buffer = buffer
        self._observers = tuple(observers)

    @property
    def listening(self) -> bool:
        """Whether anybody hears of single jobs; when not, no event need be made."""
        return bool(self._observers) or logs_jobs()

    def report(self, error: QueueError) -> None:
        kept = self._buffer.put(error)
        self.emit(ErrorReported(error=error, dropped=not kept))

    def emit(self, event: Event) -> None:
        log_event(event)
        for observer in self._observers:
            try:
                observer(event)
            except Exception:
                logger.exception("an observer raised", extra={"event": type(event).__name__})
