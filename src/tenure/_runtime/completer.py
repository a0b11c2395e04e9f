"""Completions in a transaction of the handler's own: written there, checked afterwards.

Whether that transaction was committed is for the store to say: the job is looked at once more when
its handler has ended, and only then, where it was not, is the attempt's own outcome written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tenure._runtime.failures import describe
from tenure._runtime.finished import Finished
from tenure._runtime.loop import Backoff
from tenure._runtime.report import Reporter
from tenure.clock import Clock
from tenure.codec import encode
from tenure.driver import Capability, Driver
from tenure.errors import (
    QueueError,
    StateTransitionError,
    StoreUnavailable,
    Unsupported,
    WorkerTaskError,
)
from tenure.outcomes import Completed
from tenure.payload_codec import PayloadCodec
from tenure.states import State
from tenure.types import Claim, Recorded

__all__ = ["Completer", "NotCommitted"]

T = TypeVar("T")
Answered = Callable[[Finished, Recorded | None], None]


class NotCommitted(Exception):
    """The handler returned, and left the transaction of its completion uncommitted."""

    def __init__(self) -> None:
        super().__init__("complete_within() was called, but its transaction was not committed")


class Completer:
    """The store as `RunningJob.complete_within` and its check see it."""

    def __init__(
        self,
        driver: Driver,
        result_limit: int,
        codec: PayloadCodec | None,
        reporter: Reporter,
        clock: Clock,
        spawn: Callable[[Coroutine[object, object, None], str], "asyncio.Task[None]"],
    ) -> None:
        self._driver = driver
        self._result_limit = result_limit
        self._codec = codec
        self._reporter = reporter
        self._clock = clock
        self._spawn = spawn
        self._unanswered: set[Finished] = set()

    async def complete(self, claim: Claim, connection: object, result: Any) -> Completed:
        """Write the completion in the transaction; with a blocking connection never suspends."""
        if Capability.WITHIN not in self._driver.capabilities:
            raise Unsupported("complete_within()")
        encoded = None
        if result is not None:
            encoded = encode(result, root="result", limit=self._result_limit, codec=self._codec)
        outcome = Completed(encoded)
        (answer,) = await self._driver.record_within([(claim.hold, outcome)], connection)
        if answer not in (Recorded.APPLIED, Recorded.REPEATED):
            raise StateTransitionError(
                claim.hold.job_id,
                "complete_within",
                "nothing was changed: the hold is not current, since the job was reclaimed and "
                "perhaps run again elsewhere; roll the transaction back",
            )
        return outcome

    def check(self, item: Finished, answered: Answered) -> None:
        """Find out whether the completion was committed, and write the item's outcome if not.

        Each in a task of its own: where the handler has left its transaction open, the store may
        make this write wait for it, and no other outcome shall wait with it.
        """
        self._unanswered.add(item)
        task = self._spawn(self._check(item, answered), "tenure-check")
        # Also one that the host cancelled before its first step, which never came to `_check`.
        task.add_done_callback(lambda _: self._done(item, None, answered))

    def unless_committed(self, claim: Claim, lost: Callable[[], None]) -> None:
        """Call `lost` where something else than the handler's own commit has ended the hold.

        The store is asked once: as long as the handler runs, the keeper comes back.
        """
        self._spawn(self._unless_committed(claim, lost), "tenure-check")

    async def _unless_committed(self, claim: Claim, lost: Callable[[], None]) -> None:
        try:
            if not await self._is_committed(claim):
                lost()
        except QueueError as error:
            self._reporter.report(error)
        except Exception as error:
            death = WorkerTaskError("check", describe(error))
            death.__cause__ = error
            self._reporter.report(death)

    @property
    def unanswered(self) -> list[Finished]:
        """What has not been answered."""
        return list(self._unanswered)

    def abandon(self) -> list[Finished]:
        """Give up what has not been answered."""
        left = list(self._unanswered)
        self._unanswered.clear()
        return left

    async def _check(self, item: Finished, answered: Answered) -> None:
        answer: Recorded | None = None
        try:
            if await self._persist(item, lambda: self._is_committed(item.claim)):
                _complete(item)
                answer = Recorded.APPLIED
            else:
                write = [(item.claim.hold, item.outcome)]
                (answer,) = await self._persist(item, lambda: self._driver.record(write))
        except Exception as error:
            # Refused for good, or a defect: the recorder writes it, as it does all others. Under a
            # hold that the handler's commit has settled, that changes nothing.
            unknown = f"whether it was committed could not be found out ({describe(error)})"
            job_id = item.claim.hold.job_id
            self._reporter.report(StateTransitionError(job_id, "complete_within", unknown))
        finally:
            item.within = None
            self._done(item, answer, answered)

    def _done(self, item: Finished, answer: Recorded | None, answered: Answered) -> None:
        if item in self._unanswered:
            self._unanswered.discard(item)
            answered(item, answer)

    async def _persist(self, item: Finished, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat the call until the store answers."""
        backoff = Backoff(0.05, 2.0)
        while True:
            try:
                return await call()
            except StoreUnavailable as error:
                self._reporter.report(error)
                item.repeated |= error.ambiguous
            await self._clock.sleep(backoff.pause())

    async def _is_committed(self, claim: Claim) -> bool:
        job = await self._driver.get(claim.hold.job_id)
        # A running job is never deleted: one that is gone had ended.
        return job is None or (job.serial == claim.hold.serial and job.state is State.COMPLETED)


def _complete(item: Finished) -> None:
    """Its handler has completed the job; what it did after the commit changes nothing."""
    if item.within is not None:
        item.outcome = item.within
    if item.operation == "complete_within":
        item.error = None
    elif item.error is not None:
        item.error = StateTransitionError(
            item.claim.hold.job_id,
            item.operation,
            f"the job stays completed, as the handler had committed it before: {item.error}",
        )
