"""Lets calls of `enqueue` that arrive together share one round trip, each answered by itself.

Calls gather while one round trip is in flight, and within one turn of the loop; no timer makes
anybody wait. A script decides group by group, so all-or-none stays with each call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tenure.drivers.redis import replies
from tenure.drivers.redis.client import Argument
from tenure.drivers.redis.requests import group
from tenure.errors import StoreError, StoreUnavailable
from tenure.types import Enqueued, Held, NewJob

__all__ = ["Enqueuing"]

_TOGETHER = 1000  # jobs; one call alone may have more
_TOGETHER_BYTES = 8 * 1024 * 1024  # so that a part is answered well within the time limit


class _Call:
    """A call that waits for its answer."""

    __slots__ = ("arguments", "future", "payload", "size")

    def __init__(self, jobs: Sequence[NewJob]) -> None:
        self.arguments = group(jobs)
        self.size = len(jobs)
        self.payload = sum(len(job.payload) for job in jobs)
        self.future: asyncio.Future[list[Enqueued | Held]]
        self.future = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Enqueuing:
    """`send` runs the script with the server's clock and returns its answer."""

    def __init__(
        self, send: Callable[[Sequence[Argument]], Awaitable[Sequence[int | bytes]]]
    ) -> None:
        self._send = send
        self._waiting: list[_Call] = []
        self._sender: asyncio.Task[None] | None = None

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | Held]:
        """See `Driver.enqueue`, at the store's now."""
        call = _Call(jobs)
        self._waiting.append(call)
        if self._sender is None or self._sender.done():
            # A task of its own starts after the calls that this turn of the loop still brings.
            self._sender = asyncio.create_task(self._run(), name="tenure-redis-enqueue")
        return await call.future

    async def close(self) -> None:
        """Stop; what is under way ends as an ambiguous failure."""
        sender, self._sender = self._sender, None
        try:
            if sender is not None and not sender.done():
                sender.cancel()
                await asyncio.wait([sender])
        finally:  # also those that a sender was to send which came to no step of its own
            self._give_up()

    async def _run(self) -> None:
        calls: list[_Call] = []
        try:
            while calls := self._next():
                await self._answer(calls)
                calls = []
        finally:
            for call in calls:
                call.fail(StoreUnavailable("the driver was closed meanwhile", ambiguous=True))
            if calls:
                self._give_up()

    def _give_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call.fail(StoreUnavailable("the driver was closed"))

    def _next(self) -> list[_Call]:
        """As many of the waiting calls as one script may take, at least one if there is any."""
        number = jobs = payload = 0
        for call in self._waiting:
            jobs += call.size
            payload += call.payload
            if number and (jobs > _TOGETHER or payload > _TOGETHER_BYTES):
                break
            number += 1
        calls, self._waiting = self._waiting[:number], self._waiting[number:]
        # Nobody knows of a call that was cancelled before it was sent.
        return [call for call in calls if not call.future.cancelled()] or (
            self._next() if self._waiting else []
        )

    async def _answer(self, calls: list[_Call]) -> None:
        arguments: list[Argument] = [len(calls)]
        for call in calls:
            arguments += call.arguments
        try:
            reply = await self._send(arguments)
        except StoreUnavailable as error:
            for call in calls:
                call.fail(StoreUnavailable(str(error), ambiguous=error.ambiguous))
        except StoreError as error:
            if len(calls) == 1:
                calls[0].fail(error)
                return
            for call in calls:  # nothing was done: one bad call must not fail the others
                await self._answer([call])
        except Exception as error:  # a fault of this driver; whoever waits must learn of it
            for call in calls:
                call.fail(error)
        else:
            at = 0
            for call in calls:
                answers = replies.enqueued(reply[at : at + call.size])
                at += call.size
                if not call.future.done():
                    call.future.set_result(answers)
