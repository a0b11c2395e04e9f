"""How a running worker is, for people and programs that watch it. Values, and what makes them.

Read from any thread, also while the event loop is blocked. It changes nothing.
"""

from datetime import datetime, timedelta
from math import isinf

from msgspec import Struct

from tenure._runtime.claimer import Claimer
from tenure._runtime.slots import Slots
from tenure.clock import Clock

__all__ = ["Stillness", "Vitals", "claimed_at"]


class Vitals(Struct, frozen=True, kw_only=True):
    """How one run of a worker is at this instant.

    - `running`: it has not stopped;
    - `claiming`: its store is open, and it takes jobs: nobody has told it to stop;
    - `healthy`: as `WorkerHandle.healthy`;
    - `slots`: how many handlers it may run at once now, replacements of overdue ones included;
      `used`: how many run; `overdue`: how many of them are past their time limit and go on;
    - `claimed_at`: when the store last answered a claim, with jobs or without; None before that;
    - `still`: for how many seconds it could have claimed and has not, as far as earlier looks can
      tell: more than a minute beyond the poll interval, on a store that answers, is a defect;
    - `problem`: why the last claim failed; empty where it did not;
    - `dropped_errors`: as `WorkerHandle.dropped_errors`.
    """

    running: bool
    claiming: bool
    healthy: bool
    slots: int
    used: int
    overdue: int
    claimed_at: datetime | None
    still: float
    problem: str
    dropped_errors: int


class Stillness:
    """Notices that no claim is sent or answered while one should be."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps = -1
        self._since = 0.0

    def seconds(self, claimer: Claimer, slots: Slots) -> float:
        """For how long it has been so, since the first look that found it so."""
        now = self._clock.monotonic()
        # To fill its slots it has to claim: with the same count at both looks they were free
        # all the time between.
        idle = claimer.closed or (slots.free <= 0 and not claimer.in_flight)
        if idle or claimer.steps != self._steps:
            self._steps, self._since = claimer.steps, now
        return now - self._since


def claimed_at(claimer: Claimer, clock: Clock) -> datetime | None:
    """When the last claim was answered, by the wall clock."""
    seconds = clock.monotonic() - claimer.claimed_at
    return None if isinf(seconds) else clock.now() - timedelta(seconds=max(0.0, seconds))
