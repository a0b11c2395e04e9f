"""The job as its handler sees it, on the event loop or in a thread."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from tenure._runtime.progress import JobProgress
from tenure.errors import InvalidConfiguration
from tenure.outcomes import Completed
from tenure.types import Claim

__all__ = ["Completing", "RunningJob"]

Completing = Callable[[Claim, object, Any], Coroutine[Any, Any, Completed]]


class RunningJob:
    """The job as its handler sees it.

    `fence` grows with every claim of the job: hand it to what the handler writes to, and refuse
    older ones there. `cancelled` tells a handler in a thread that it should stop.
    """

    __slots__ = ("_claim", "_completing", "_progress", "cancelled", "completed", "payload")

    def __init__(
        self, claim: Claim, payload: Any, completing: Completing, progress: JobProgress
    ) -> None:
        self._claim = claim
        self._completing = completing
        self._progress = progress
        self.payload: Any = payload
        self.cancelled: bool = False
        self.completed: Completed | None = None  # what `complete_within` has written

    @property
    def id(self) -> str:
        return self._claim.job.id

    @property
    def name(self) -> str:
        return self._claim.job.name

    @property
    def queue(self) -> str:
        return self._claim.job.queue

    @property
    def attempt(self) -> int:
        """Which start of the handler this is, from 1."""
        return self._claim.attempt

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._claim.job.headers)

    @property
    def fence(self) -> int:
        """The serial of this claim, for fencing one's own writes."""
        return self._claim.hold.serial

    def set_progress(self, fraction: float, note: str | None = None) -> Awaitable[None]:
        """Say how far the job is: `fraction` from 0 to 1, and a note of at most 500 characters.

        `queue.get(id).progress` shows both, as of about a tenth of a second ago. Call it as often
        as you like: only the newest of what is new is written, at most some ten times a second, and
        the last of it before the outcome (unless the job was completed by `complete_within`). Each
        call replaces the note; a longer one is cut. What the next attempt does not replace stays.

        Never waits for the store, and never fails the job: an error there is reported to the
        worker's handle, and the newest is written later, or dropped with the attempt. Where the
        lease turns out to be lost, nothing is changed, and the handler is told as ever: `LeaseLost`
        is reported and it is cancelled. Await it on an event loop, which gives others a turn; in a
        thread the call alone does it. Raises `InvalidConfiguration`, a `ValueError`, for a fraction
        or note that is none, and `Unsupported` by store.
        """
        self._progress.set(fraction, note)
        return _TURN

    def log(self, text: str) -> Awaitable[None]:
        """Add a line, with its time, to those that `queue.get(id).progress.log` shows.

        The newest 100 are kept, also from one attempt to the next, each at most 500 characters. In
        all else it is as `set_progress`.
        """
        self._progress.log(text)
        return _TURN

    def complete_within(self, connection: object, result: Any = None) -> Awaitable[None]:
        """Complete the job in a transaction of the handler's own, together with its writes.

        `connection` is what `Queue.dispatch` takes as `within=`. The completion and all that the
        transaction holds are committed together or not at all; the handler commits. `result` is
        stored as the job's result; what the handler returns is not. An attempt that returns without
        having committed has failed, and is retried as its policy says.

        Await it on an event loop. In a thread it has been done when it returns, and needs a
        blocking connection. Raises `StateTransitionError` where the hold is not current any more
        (roll back then), `SerializationError` for the result, `Unsupported` by store, and as
        `Queue.dispatch` does for the connection.
        """
        call = self._complete(connection, result)
        if asyncio._get_running_loop() is not None:
            return call
        try:
            call.send(None)
        except StopIteration:
            return _DONE
        call.close()
        raise InvalidConfiguration(
            "connection", connection, "must be a blocking one where there is no event loop"
        )

    async def _complete(self, connection: object, result: Any) -> None:
        self._progress.completing = True
        self.completed = await self._completing(self._claim, connection, result)

    def __repr__(self) -> str:
        return f"<RunningJob {self.id} {self.name!r} attempt {self.attempt}>"


class _Done:
    """To be awaited by who likes; there is nothing left to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE = _Done()


class _Turn:
    """To be awaited by who likes: one turn of the event loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_TURN = _Turn()
