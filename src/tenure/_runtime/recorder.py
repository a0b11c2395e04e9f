"""Writes outcomes: in batches, each durable before its job counts as done.

While one write is in flight the next batch gathers, so that an idle worker answers at once and a
busy one writes hundreds together. Where there is enough for two that the store gains by it
(`Driver.overlap`), a second one is sent meanwhile: the worker runs what one of them brought while
the store is at the other. A claim that is due rides in the same round trip where the driver can.
Outcomes are repeated until the store has answered; it never gives one up for a failure of the
store, and a bad one never blocks the others.
"""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from tenure._runtime.completer import Completer
from tenure._runtime.failures import describe
from tenure._runtime.finished import Finished
from tenure._runtime.loop import Backoff
from tenure._runtime.report import Reporter
from tenure._runtime.slots import Slots
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import JobFailed, QueueError, StateTransitionError, StoreUnavailable
from tenure.events import JobFenced, JobSettled
from tenure.outcomes import Completed, Failed, Failure, Released, Retried
from tenure.types import Claim, ClaimRequest, Recorded

__all__ = ["Awaited", "Claims", "Recorder"]

_MAX_BATCH = 512


class Claims(Protocol):
    """The claimer, as far as the writing loop needs it."""

    def request(self, riding: int) -> ClaimRequest | None:
        """A claim to send now, given that `riding` outcomes go with it; it is in flight then."""
        ...

    def slots_freed(self) -> None:
        """Outcomes were answered: their slots can take new claims."""
        ...

    def launch(self, request: ClaimRequest) -> None:
        """Send the claim by itself, beside the writing loop."""
        ...

    def answered(self, request: ClaimRequest, claims: Sequence[Claim], sent: float) -> None:
        """The claim came back."""
        ...

    def failed(self, request: ClaimRequest, error: QueueError, *, report: bool) -> None:
        """The claim failed, or may have."""
        ...


class Awaited(Protocol):
    """The jobs that somebody in this process waits for; called on any thread."""

    @property
    def anyone(self) -> bool:
        """Whether anybody waits. Where nobody does, an outcome costs nothing more."""
        ...

    def settled(self, job_ids: Sequence[str]) -> None:
        """The store has answered outcomes of these jobs, so that they may have ended."""
        ...


class Recorder:
    """The writing loop. `submit` and `wake` are called on the event loop."""

    def __init__(
        self,
        driver: Driver,
        completer: Completer,
        slots: Slots,
        reporter: Reporter,
        clock: Clock,
    ) -> None:
        self._driver = driver
        self._completer = completer
        self._slots = slots
        self._reporter = reporter
        self._clock = clock
        self._fused = Capability.EXCHANGE in driver.capabilities
        self._enough = driver.overlap or math.inf  # outcomes for a write beside another
        self._can_release = Capability.RELEASE in driver.capabilities
        self._pending: deque[Finished] = deque()
        self._writing: list[list[Finished]] = []
        self._waiting: set[Finished] = set()  # for the last progress of their attempts
        self._wake = asyncio.Event()
        self._wake_second = asyncio.Event()
        self._backoff = Backoff(0.05, 2.0)
        self._batch = _MAX_BATCH
        self._away = False  # the store, when it was last written to
        self.claims: Claims | None = None
        self.awaited: Awaited | None = None

    def submit(self, item: Finished) -> None:
        """Take over an outcome; its slot stays occupied until it is answered."""
        if isinstance(item.outcome, Released) and not self._can_release:
            self._leave_to_lease(item, "this store cannot give a job back")
            return
        self._slots.unrecorded += 1
        if item.within is not None:
            if item.progress is not None:
                item.progress.drop()  # it may have to wait for the handler's own transaction
            self._completer.check(item, self._checked)
        elif item.progress is not None:
            self._waiting.add(item)
            item.progress.finish(lambda: self._told(item))
        else:
            self._write(item)

    def _told(self, item: Finished) -> None:
        """The last progress of the attempt was written, or given up."""
        if item in self._waiting:
            self._waiting.discard(item)
            self._write(item)

    def _write(self, item: Finished) -> None:
        self._pending.append(item)
        self._rouse()

    def _rouse(self) -> None:
        """There may be something to send."""
        self._wake.set()
        if self._enough_for_two():
            self._wake_second.set()

    def _enough_for_two(self) -> bool:
        """Whether another write is to go out beside the one in flight, if the store is there."""
        return len(self._pending) >= self._enough and len(self._writing) == 1 and not self._away

    def _checked(self, item: Finished, answer: Recorded | None) -> None:
        """What became of a completion of the handler's own; None where nobody looks any more."""
        if answer is None:
            self._write(item)
        else:
            self._answered([item], [answer])

    def wake(self) -> None:
        """A claim may be due."""
        self._wake.set()

    def slots_freed(self) -> None:
        """There are more slots, without an outcome that brought them."""
        if self.claims is not None:
            self.claims.slots_freed()

    async def turn(self) -> float:
        """Send what there is, and a claim with it."""
        return await self._turn(self._wake)

    async def second_turn(self) -> float:
        """The same beside `turn`, while there is enough for two."""
        return await self._turn(self._wake_second)

    async def _turn(self, wake: asyncio.Event) -> float:
        await wake.wait()
        wake.clear()
        items = [] if self._writing and not self._enough_for_two() else self._take()
        if not items:
            self._claim_alone()
            return 0.0
        self._writing.append(items)
        try:
            self._rouse()  # the other half
            delay = await self._send(items)
        finally:
            self._writing = [batch for batch in self._writing if batch is not items]
        if self._pending:
            self._rouse()
        return delay

    async def _send(self, items: list[Finished]) -> float:
        claims = self.claims
        if claims is None or not self._fused:
            self._claim_alone()
        elif (request := claims.request(riding=len(items))) is not None:
            return await self._exchange(items, claims, request)
        return await self._record(items)

    def _claim_alone(self) -> None:
        """Send a claim beside the outcomes, which are written while it is in flight."""
        if self.claims is not None and (request := self.claims.request(riding=0)) is not None:
            self.claims.launch(request)

    @property
    def unanswered(self) -> list[Finished]:
        """What has not been answered, in flight or not."""
        writing = [item for batch in self._writing for item in batch]
        return [*writing, *self._pending, *self._waiting, *self._completer.unanswered]

    def abandon(self) -> list[Finished]:
        """Give up what has not been answered, in flight or not: the caller reports it."""
        left = self.unanswered
        self._completer.abandon()
        self._writing = []
        self._waiting.clear()
        self._pending.clear()
        self._slots.unrecorded -= len(left)
        return left

    def _take(self) -> list[Finished]:
        """The next batch, in order, no job twice; half of what there is, if that is worthwhile."""
        batch = self._batch
        if not self._writing and len(self._pending) >= 2 * self._enough:
            batch = min(batch, (len(self._pending) + 1) // 2)
        items = list(islice(self._pending, batch))
        if len({item.claim.hold.job_id for item in items}) < len(items):
            items = _up_to_a_repeat(items)
        if len(items) == len(self._pending):
            self._pending.clear()
        else:
            for _ in items:
                self._pending.popleft()
        return items

    async def _record(self, items: list[Finished]) -> float:
        try:
            answers = await self._driver.record([(i.claim.hold, i.outcome) for i in items])
        except QueueError as error:
            return self._refused(items, error)
        except BaseException:
            self._put_back(items)
            raise
        self._answered(items, answers)
        return 0.0

    async def _exchange(
        self, items: list[Finished], claims: Claims, request: ClaimRequest
    ) -> float:
        sent = self._clock.monotonic()
        try:
            exchanged = await self._driver.exchange(
                [(i.claim.hold, i.outcome) for i in items], request
            )
        except QueueError as error:
            claims.failed(request, error, report=False)
            return self._refused(items, error)
        except BaseException as error:
            self._put_back(items)
            unsure = StoreUnavailable(f"the exchange broke off: {describe(error)}", ambiguous=True)
            claims.failed(request, unsure, report=False)
            raise
        self._answered(items, exchanged.recorded)
        if isinstance(exchanged.error, QueueError):
            claims.failed(request, exchanged.error, report=True)
        else:
            claims.answered(request, exchanged.claims, sent)
        return 0.0

    def _put_back(self, items: list[Finished], *, maybe_applied: bool = True) -> None:
        for item in reversed(items):
            item.repeated = item.repeated or maybe_applied
            self._pending.appendleft(item)
        self._rouse()

    def _refused(self, items: list[Finished], error: QueueError) -> float:
        """The write failed: repeat it, or find the one item that the store will not take."""
        self._reporter.report(error)
        if isinstance(error, StoreUnavailable):
            self._away = True
            self._put_back(items, maybe_applied=error.ambiguous)
            return self._backoff.pause()
        if len(items) > 1:
            self._batch = max(1, len(items) // 2)
            self._put_back(items, maybe_applied=False)
            return 0.0
        self._refused_alone(items[0], error)
        return 0.0

    def _refused_alone(self, item: Finished, error: QueueError) -> None:
        """The store refuses just this outcome: record its failure instead, or leave the lease.

        Only where the outcome carries something that a store may be unable to take. A job that was
        to be given back or cancelled has not failed.
        """
        if isinstance(item.outcome, Completed | Retried):
            job = item.claim.job
            failure = Failure(
                kind="serialization",
                message=f"the outcome could not be stored: {error}"[:4096],
                at=self._clock.now(),
                attempt=item.claim.attempt,
            )
            item.outcome = Failed(failure)
            item.operation = "fail"
            if item.error is None:
                item.error = JobFailed(job.id, job.name, item.claim.attempt, failure)
            self._put_back([item], maybe_applied=False)
            return
        self._slots.unrecorded -= 1
        self._leave_to_lease(item, f"the store refuses the outcome ({error})")

    def _leave_to_lease(self, item: Finished, why: str) -> None:
        self._reporter.report(
            StateTransitionError(
                item.claim.hold.job_id, item.operation, f"{why}, so the job is left to its lease"
            )
        )
        self.slots_freed()
        self._slots.changed()

    def _answered(self, items: list[Finished], answers: Sequence[Recorded]) -> None:
        self._away = False
        self._backoff.reset()
        self._batch = min(_MAX_BATCH, self._batch * 2)
        self._slots.unrecorded -= len(items)
        listening = self._reporter.listening
        for item, answer in zip(items, answers, strict=True):
            if answer is Recorded.APPLIED or answer is Recorded.REPEATED:
                if listening:
                    self._reporter.emit(
                        JobSettled(
                            job=item.claim.job,
                            hold=item.claim.hold,
                            attempt=item.claim.attempt,
                            outcome=item.outcome,
                            seconds=item.seconds,
                        )
                    )
                if item.error is not None:
                    self._reporter.report(item.error)
            else:
                self._fenced(item, answer)
        if self.awaited is not None and self.awaited.anyone:
            self.awaited.settled([item.claim.hold.job_id for item in items])
        self.slots_freed()
        self._slots.changed()

    def _fenced(self, item: Finished, answer: Recorded) -> None:
        hold = item.claim.hold
        self._reporter.emit(JobFenced(job=item.claim.job, hold=hold, operation=item.operation))
        what = (
            "the job is not there any more"
            if answer is Recorded.UNKNOWN
            else "the hold is not current: the job was reclaimed, and perhaps run again elsewhere"
        )
        message = (
            f"the first try may have been applied, the repeat was not: {what}"
            if item.repeated
            else f"nothing was changed: {what}"
        )
        self._reporter.report(StateTransitionError(hold.job_id, item.operation, message))


def _up_to_a_repeat(items: list[Finished]) -> list[Finished]:
    jobs: set[str] = set()
    for number, item in enumerate(items):
        job_id = item.claim.hold.job_id
        if job_id in jobs:
            return items[:number]
        jobs.add(job_id)
    return items
