"""The job as its handler sees it, on the event loop or in a thread."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

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

    __slots__ = ("_claim", "_completing", "cancelled", "completed", "payload")

    def __init__(self, claim: Claim, payload: Any, completing: Completing) -> None:
        self._claim = claim
        self._completing = completing
        self.payload = payload
        self.cancelled = False
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
        self.completed = await self._completing(self._claim, connection, result)

    def __repr__(self) -> str:
        return f"<RunningJob {self.id} {self.name!r} attempt {self.attempt}>"


class _Done:
    """To be awaited by who likes; there is nothing left to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE = _Done()
