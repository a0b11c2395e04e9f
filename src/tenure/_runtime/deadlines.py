"""The time limits of running attempts: one timer that rings at the earliest.

It stops what has run too long, and tells when that does not help. How an attempt is stopped is the
executor's to say.
"""

from collections.abc import Callable

from tenure._runtime.report import Reporter
from tenure._runtime.slots import Attempt, Slots, Stop
from tenure.clock import Clock, Timer
from tenure.errors import JobOverdue

__all__ = ["Deadlines"]

# How long a cancelled handler may take for its cleanup before it is called overdue.
_CLEANUP = 1.0


class Deadlines:
    """The deadlines of one worker.

    `interrupt` stops an attempt; `replaced` is called when an overdue one has been made up for by
    another slot.
    """

    def __init__(
        self,
        slots: Slots,
        reporter: Reporter,
        clock: Clock,
        *,
        interrupt: Callable[[Attempt], None],
        replaced: Callable[[], None],
    ) -> None:
        self._slots = slots
        self._reporter = reporter
        self._clock = clock
        self._interrupt = interrupt
        self._replaced = replaced
        self._rings_at = float("inf")
        self._timer: Timer | None = None

    def add(self, attempt: Attempt) -> None:
        """A running attempt has this deadline from now on."""
        if attempt.deadline < self._rings_at:
            self._ring_at(attempt.deadline)

    def close(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _ring_at(self, instant: float) -> None:
        self.close()
        self._rings_at = instant
        delay = max(0.0, instant - self._clock.monotonic())
        self._timer = self._clock.call_later(delay, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._rings_at = float("inf")
        now = self._clock.monotonic()
        following = float("inf")
        for attempt in list(self._slots.running.values()):
            if not attempt.overdue and attempt.check_at <= now:
                self._overrun(attempt, now)
            if not attempt.overdue:
                following = min(following, attempt.check_at)
        if following < self._rings_at:  # unless one that has just been started is due earlier
            self._ring_at(following)

    def _overrun(self, attempt: Attempt, now: float) -> None:
        """The deadline has passed: cancel, and tell when that does not help."""
        first = attempt.check_at == attempt.deadline
        if first:
            attempt.check_at = now + _CLEANUP
            if attempt.stop is None:
                attempt.stop = Stop.TIMEOUT
                self._interrupt(attempt)
        if not first or attempt.in_thread:
            self._slots.mark_overdue(attempt)
            job = attempt.claim.job
            left = self._slots.left
            error = JobOverdue(job.id, job.name, now - attempt.started, slots_left=left)
            self._reporter.report(error)
            if self._slots.replaces(attempt):
                self._replaced()
