"""Decides when to claim and how many, and what to do when a claim fails.

It asks for as many jobs as there are free slots and never for more. The claim itself goes out
through the recorder's loop, alone or with outcomes; what it brings is for `judge.py` to look at.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from secrets import token_hex

from tenure._runtime.failures import describe
from tenure._runtime.flights import Flights
from tenure._runtime.judge import Judge
from tenure._runtime.lines import Lines
from tenure._runtime.loop import Backoff, first_of
from tenure._runtime.recorder import Recorder
from tenure._runtime.report import Reporter
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Slots
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import QueueError, StoreUnavailable
from tenure.events import JobClaimed
from tenure.handlers import HandlerSpec
from tenure.types import Claim, ClaimRequest, QueueLimit

__all__ = ["Claimer"]

_FLOOR = 0.002  # after an empty claim; hints may lie, and often
_LULL = 0.01  # how long nothing must happen before the next due time is asked for
_LONGEST_BACKOFF = 4.0  # so that a store that is back is in use within five seconds
_POLLS_PER_HINT = 10.0  # a hint is waited for longer than a poll, so that its end makes no claim


class Claimer:
    """The claiming half of one worker."""

    def __init__(
        self,
        driver: Driver,
        settings: WorkerSettings,
        handlers: Mapping[str, HandlerSpec],
        slots: Slots,
        recorder: Recorder,
        judge: Judge,
        reporter: Reporter,
        clock: Clock,
        spawn: Callable[[Coroutine[object, object, None], str], "asyncio.Task[None]"],
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._slots = slots
        self._recorder = recorder
        self._judge = judge
        self._reporter = reporter
        self._clock = clock
        self._spawn = spawn
        can = driver.capabilities
        self._can_wait = Capability.WAIT in can
        self._can_ask_due = Capability.NEXT_DUE in can
        self._names = frozenset(handlers) if Capability.NAMES in can else None
        # However long the polls are: what waits here is not known to be nothing.
        self._backoff = Backoff(settings.poll_interval, _LONGEST_BACKOFF)
        self.closed: bool = False
        self._wanted = True
        self._flights = Flights(slots)
        self._broken: Exception | None = None
        self._not_before = 0.0
        self._empty_at: float | None = None  # when the last claim came back with nothing
        self.claimed_at: float = float("-inf")  # monotonic: when the last claim was answered
        self.problem: str = ""  # why the last claim failed, if it did
        self.steps: int = 0  # grows with each claim that is sent, and with each answer
        self._due = float("inf")  # monotonic; means something while it is known
        self._due_known = False
        self._rested = asyncio.Event()  # the last claim came back short
        self._hint: asyncio.Task[bool] | None = None
        self._listen_from = 0.0
        self._hint_backoff = Backoff(settings.poll_interval, _LONGEST_BACKOFF)
        self._queues = settings.queue_names
        self._lines = Lines(
            settings.queues,
            self._used,
            strict=settings.strict,
            concurrency=settings.concurrency,
        )

    # --- what the recorder asks -----------------------------------------------------------------

    def request(self, riding: int) -> ClaimRequest | None:
        if self.closed or not (self._wanted or riding):
            return None
        if self._flights and not riding:
            return None  # where nothing else is sent, one claim at a time will do
        now = self._clock.monotonic()
        if now < self._not_before:
            return None
        request = self._flights.lost() or self._anew(riding)
        if request is not None:
            self._wanted = False
            self.steps += 1
            self._rested.clear()
            self._flights.begin(request, riding, now)
        return request

    def _anew(self, riding: int) -> ClaimRequest | None:
        """A request for all free slots; None where there are none, or every queue has its own."""
        limit = self._slots.free + riding
        queues = self._lines.ask(limit) if limit > 0 else ()
        return self._new_request(queues, limit) if queues else None

    def launch(self, request: ClaimRequest) -> None:
        self._spawn(self._claim(request), "tenure-claim")

    def answered(self, request: ClaimRequest, claims: Sequence[Claim], sent: float) -> None:
        # What a repeat returns may be held since the first try; its lease began then.
        sent = min(sent, self._flights.answered(request))
        self._backoff.reset()
        self.claimed_at = self._clock.monotonic()
        self.steps += 1
        self.problem = ""
        self._empty_at = None if claims else self.claimed_at
        self._lines.taken(claims)
        full = len(claims) >= request.limit or _filled_by_size(request, claims)
        listening = self._reporter.listening
        for claim in claims:
            if listening:
                self._reporter.emit(JobClaimed(job=claim.job, hold=claim.hold))
            self._judge.judge(claim, sent, self.claimed_at)
        if full and not self.closed:
            self.want()
        else:
            self._rested.set()
        self._slots.changed()

    def failed(self, request: ClaimRequest, error: QueueError, *, report: bool) -> None:
        ambiguous = isinstance(error, StoreUnavailable) and error.ambiguous
        self._flights.failed(request, ambiguous=ambiguous)
        self.steps += 1
        self.problem = str(error)
        if report:
            self._reporter.report(error)
        self._not_before = self._clock.monotonic() + self._backoff.pause()
        self._rested.set()
        self._slots.changed()

    def _used(self) -> Counter[str]:
        """How many slots each queue occupies or may be given by what is in flight.

        Outcomes that are not answered yet occupy theirs.
        """
        used = self._slots.used() + self._flights.asked()
        used.update(item.claim.job.queue for item in self._recorder.unanswered)
        return used

    def _new_request(self, queues: tuple[QueueLimit, ...], limit: int) -> ClaimRequest:
        return ClaimRequest(
            token=token_hex(8),
            queues=queues,
            limit=min(limit, sum(queue.limit for queue in queues)),
            worker=self._settings.worker_id,
            lease=self._settings.lease,
            names=self._names,
        )

    async def _claim(self, request: ClaimRequest) -> None:
        sent = self._clock.monotonic()
        try:
            claims = await self._driver.claim(request)
        except QueueError as error:
            self.failed(request, error, report=True)
            return
        except (Exception, asyncio.CancelledError) as error:
            unsure = StoreUnavailable(f"the claim broke off: {describe(error)}", ambiguous=True)
            self.failed(request, unsure, report=False)
            if isinstance(error, asyncio.CancelledError):
                raise
            self._broken = error  # a defect: it ends the claimer's turn, which reports it
            return
        self.answered(request, claims, sent)

    # --- when to claim --------------------------------------------------------------------------

    def want(self) -> None:
        """A claim may find something; it goes out as soon as a slot is free."""
        self._wanted = True
        self._recorder.wake()

    def slots_freed(self) -> None:
        if self._wanted:
            self._recorder.wake()
        elif self._lines.held_back or not (self._can_wait or self._flights):
            self.want()

    async def turn(self) -> float:
        """Rest after a claim that came back short, then let another one go out and come back."""
        await self._rested.wait()
        if self.closed:
            self._rested.clear()
            return 0.0
        await self._pause()
        if not self._listen():
            await self._rest()
            self._listen()
        # Where it listens anew it looks once more: nothing comes between the two unseen.
        if self._empty_at is not None:
            floor = self._empty_at + _FLOOR - self._clock.monotonic()
            if floor > 0:
                await self._clock.sleep(floor)
        await self._pause()  # a claim that rode with outcomes may have failed meanwhile
        self._rested.clear()
        self.want()
        await self._rested.wait()
        if self._broken is not None:
            error, self._broken = self._broken, None
            raise error
        return 0.0

    async def _pause(self) -> None:
        """Let the pause after a failed claim pass."""
        pause = self._not_before - self._clock.monotonic()
        if pause > 0:
            await self._clock.sleep(pause)
            # Over, even where the timer rang a hair too early: nobody would ask again.
            self._not_before = 0.0

    def _listen(self) -> bool:
        """Begin to wait for a hint where nothing does so yet; whether it began."""
        now = self._clock.monotonic()
        if self._hint is not None:
            if not self._hint.done():
                return False
            hint, self._hint = self._hint, None
            error = None if hint.cancelled() else hint.exception()
            if isinstance(error, QueueError):
                # Polling takes the place of hints until they can be had again.
                self._reporter.report(error)
                self._listen_from = now + self._hint_backoff.pause()
            elif error is not None:
                raise error
            else:
                self._hint_backoff.reset()
        if not self._can_wait or now < self._listen_from:
            return False
        self._hint = asyncio.get_running_loop().create_task(self._wait(), name="tenure-hint")
        return True

    async def _wait(self) -> bool:
        return await self._driver.wait(self._queues, self._settings.poll_interval * _POLLS_PER_HINT)

    async def _rest(self) -> None:
        """Wait for a hint, the next due time or the poll interval, whichever is first.

        As with hints, the next due time is asked for before the claim that finds nothing: a job
        that falls due between the two is found by the claim, a later one is in the answer.
        """
        end = self.claimed_at + self._settings.poll_interval
        if self._can_wait and self._hint is None:
            end = min(end, self._listen_from)  # a poll of minutes is not to take their place
        if self._can_ask_due and not self._due_known:
            if not await self._hinted(_LULL):
                await self._ask_due()
            return
        hinted = await self._hinted(min(end, self._due) - self._clock.monotonic())
        self._due_known = False
        if self._can_ask_due and not hinted and end <= self._due:
            await self._ask_due()

    async def _hinted(self, timeout: float) -> bool:
        """Whether a hint came within `timeout` seconds."""
        hints = () if self._hint is None else (self._hint,)
        await first_of(self._clock, max(0.0, timeout), *hints)
        return self._hint is not None and self._hint.done()

    async def _ask_due(self) -> None:
        """Note when the next waiting job falls due, on the monotonic clock."""
        self._due_known = True
        self._due = float("inf")
        try:
            due = await self._driver.next_due(self._queues)
        except QueueError as error:
            self._reporter.report(error)
            return
        if due is not None:
            wait = (due - self._clock.now()).total_seconds()
            self._due = self._clock.monotonic() + max(0.0, wait)

    # --- shutdown -------------------------------------------------------------------------------

    @property
    def in_flight(self) -> bool:
        return bool(self._flights)

    def close(self) -> None:
        """Claim no more. What a claim in flight returns is put back; so are prefetched jobs."""
        self.closed = True
        self._rested.set()
        self._judge.close()

    def recover(self) -> None:
        """After `close`: ask once more for claims whose answer was lost, to put them back."""
        while (request := self._flights.last_repeat()) is not None:
            self._flights.begin(request, 0, self._clock.monotonic())
            self.launch(request)

    def stop(self) -> "asyncio.Task[bool] | None":
        """Stop listening for hints; the task to await is returned."""
        if self._hint is not None:
            self._hint.cancel()
        return self._hint


def _filled_by_size(request: ClaimRequest, claims: Sequence[Claim]) -> bool:
    """Whether the claim may have stopped at its bound of bytes instead of at the queue's end."""
    return 2 * sum(len(claim.job.payload) for claim in claims) > request.max_bytes
