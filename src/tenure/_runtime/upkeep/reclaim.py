"""Finds holds whose lease has run out, whoever's, and makes their jobs pending again.

It leaves alone what runs here: after an outage this worker's own leases look run out too, until its
keeper has extended them. So do those of what has ended here and waits to be written. When the
store's clock has jumped, while it looks or, where the store can tell, just before it began to, a
lease that looks run out may be a living worker's: then only holds are reclaimed that this worker
itself has seen unextended for their whole lease, by its monotonic clock. The same goes, whenever it
is met, for a lease that ends later than its length from now.

Where the store can see that the process of a worker has ended, it is asked every second or two
to let that worker's leases end; all else takes its usual way, just earlier.
"""

from collections.abc import Sequence
from random import random

from tenure._runtime.recorder import Recorder
from tenure._runtime.report import Reporter
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Slots
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import QueueError
from tenure.events import JobsReclaimed
from tenure.types import Expired, ExpiredHold, Hold

__all__ = ["RECLAIM_DELAYS", "Reclaimer"]

# Seconds until a reclaimed job is due again, by the stalls it has had in a row: the first recovery
# is immediate, a job that keeps killing its workers comes back ever more slowly.
RECLAIM_DELAYS = (0.0, 2.0, 10.0, 60.0, 300.0)

_BATCH = 500
_WATCHED = 10_000  # holds at once, after a jump: the next ones would be watched a lease later
_LONGEST = 60.0
_SHORTEN_EVERY = 1.6  # at most once in a second, and soon enough for two
_AFTER_ERROR = 10.0


class Reclaimer:
    """The reclaim loop of one worker."""

    def __init__(
        self,
        driver: Driver,
        settings: WorkerSettings,
        slots: Slots,
        recorder: Recorder,
        reporter: Reporter,
        clock: Clock,
    ) -> None:
        self._driver = driver
        self._slots = slots
        self._recorder = recorder
        self._reporter = reporter
        self._clock = clock
        self._lease = settings.lease
        self._interval = max(1.0, min(settings.lease, _LONGEST))
        self._next_look = clock.monotonic()
        self._next_shorten: float | None = None
        if Capability.LIFELINE in driver.capabilities:
            self._next_shorten = clock.monotonic()
        self._offset: float | None = None  # store time minus monotonic time, at the last look
        self._wary_until: float | None = None
        self._seen: dict[Hold, tuple[ExpiredHold, float]] = {}

    async def turn(self) -> float:
        """Do what is due; the seconds until something is again."""
        if self._next_shorten is not None and self._clock.monotonic() >= self._next_shorten:
            self._next_shorten = await self._shorten()
        if self._clock.monotonic() >= self._next_look:
            self._next_look = await self._look()
        times = [self._next_look, *([] if self._next_shorten is None else [self._next_shorten])]
        return max(0.0, min(times) - self._clock.monotonic())

    async def _shorten(self) -> float:
        """Let the leases of workers that are gone end; when to ask again."""
        try:
            left = await self._driver.shorten()
        except QueueError as error:
            self._reporter.report(error)
            return self._from_now(_AFTER_ERROR)
        if left is not None:
            self._next_look = min(self._next_look, self._clock.monotonic() + left)
        return self._from_now(_SHORTEN_EVERY)

    def _from_now(self, seconds: float) -> float:
        """That many seconds from now, with jitter that only shortens."""
        return self._clock.monotonic() + seconds * (1.0 - random() / 5)

    async def _look(self) -> float:
        """Look once, reclaim what may be; when to look again."""
        try:
            limit = _BATCH if self._wary_until is None else _WATCHED
            found = await self._driver.expired(limit)
            self._notice_jump(found)
            holds = self._reclaimable(found)
            own = set(self._slots.holds(self._clock.monotonic()))
            own.update(item.claim.hold for item in self._recorder.unanswered)
            holds = [hold for hold in holds if hold not in own]
            if holds:
                reclaimed = await self._driver.reclaim(_BATCH, RECLAIM_DELAYS, only=holds)
                if reclaimed:
                    self._reporter.emit(
                        JobsReclaimed(job_ids=tuple(hold.job_id for hold in reclaimed))
                    )
                if len(found.holds) >= _BATCH:
                    return self._clock.monotonic()
        except QueueError as error:
            self._reporter.report(error)
        return self._from_now(self._interval)

    def _notice_jump(self, found: Expired) -> None:
        offset = found.now.timestamp() - self._clock.monotonic()
        if self._jumped(found, offset):
            self._wary_until = self._clock.monotonic() + self._lease
            self._seen.clear()
        self._offset = offset

    def _jumped(self, found: Expired, offset: float) -> bool:
        """Since the look before; at the first one, within the lease of any hold that it found."""
        if self._offset is not None:
            return abs(offset - self._offset) > self._lease / 3
        longest = max([self._lease, *(entry.lease for entry in found.holds)])
        return found.steady is not None and found.steady < longest

    def _wary(self) -> bool:
        """Since the jump for one lease, in which whoever lives extends, and until all is clear."""
        if self._wary_until is None:
            return False
        if self._clock.monotonic() >= self._wary_until and not self._seen:
            self._wary_until = None
        return self._wary_until is not None

    def _reclaimable(self, found: Expired) -> list[Hold]:
        """Those of which the clock can be trusted, or that have been watched for long enough."""
        wary = self._wary()
        watched = [entry for entry in found.holds if wary or entry.until > found.now]
        trusted = [entry.hold for entry in found.holds if not wary and entry.until <= found.now]
        return trusted + self._unextended(watched)

    def _unextended(self, found: Sequence[ExpiredHold]) -> list[Hold]:
        """The holds that have stood unextended here for their whole lease."""
        now = self._clock.monotonic()
        before, self._seen = self._seen, {}
        for entry in found:
            known, since = before.get(entry.hold, (entry, now))
            self._seen[entry.hold] = (entry, since if known.until == entry.until else now)
        return [hold for hold, (entry, since) in self._seen.items() if now - since >= entry.lease]
