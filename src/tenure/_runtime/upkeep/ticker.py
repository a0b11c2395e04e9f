"""Fires the instants of the store's schedules: any worker does, none is a leader.

Sleeps until the next instant by the store's clock, then lets it pass with a compare-and-set in the
store, so that of all workers one makes the job (I13). It knows the schedules from a look that it
repeats every poll interval, half a minute at most, and at once when another worker was first or the
clocks disagree. A schedule that cannot be read is reported once and harms no other.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from tenure._runtime.loop import Backoff
from tenure._runtime.report import Reporter
from tenure.clock import Clock
from tenure.cron import Recurrence
from tenure.driver import Driver
from tenure.errors import QueueError, SerializationError
from tenure.events import ScheduleFired, TicksSkipped
from tenure.schedules import Definition, job_of_tick, read_definition
from tenure.standing import Fired, ScheduleRecord, Tick
from tenure.ticks import GRACE, Due, due

__all__ = ["Ticker"]

_LOOK = 1.0  # seconds between two looks, where the poll interval is not longer
# And where there are no schedules at all, as in most stores. The first rest is half as long, so
# that the looks of an idle worker fall between the ends of its waits for hints.
_LOOK_FOR_FIRST = 10.0
_LOOK_EACH = 0.001  # and for each schedule, so that a thousand cost no more than one a millisecond
_LOOK_AT_LATEST = GRACE.total_seconds() / 2  # else ticks of a new schedule would count as missed
_AT_ONCE = 100
_MOST_BYTES = 4 * 1024 * 1024  # of payload in one call
_FLOOR = 0.001  # seconds; less may be none at all to a clock that counts in floats
_EARLY = 0.005  # seconds; the store's clock and this one's do not quite agree


class _Known(Struct):
    """A schedule with what its definition means; `wake` is when to look at its ticks again."""

    record: ScheduleRecord
    definition: Definition
    recurrence: Recurrence
    wake: datetime | None


class Ticker:
    """The firing loop of one worker."""

    def __init__(
        self, driver: Driver, poll_interval: float, reporter: Reporter, clock: Clock
    ) -> None:
        self._driver = driver
        self._interval = max(_LOOK, poll_interval)
        self._reporter = reporter
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._unreadable: set[tuple[str, str]] = set()
        self._looked = float("-inf")  # monotonic
        self._store_time: datetime | None = None  # at that moment
        self._looks = 0
        self._backoff = Backoff(_LOOK, 8 * _LOOK)

    async def turn(self) -> float:
        """Fire what is due; the seconds until something may be again."""
        fired = False
        try:
            if self._stale_in() <= 0:
                await self._look()
            for ticks, of in self._batches(self._gather()):
                self._judge(ticks, of, await self._driver.fire(ticks))
            fired = True
        except QueueError as error:
            self._reporter.report(error)
            return self._backoff.pause()
        finally:
            if not fired:  # what was in the call may have passed, or not
                self._known.clear()
                self._forget_look()
        self._backoff.reset()
        return self._rest()

    # --- what there is --------------------------------------------------------------------------

    async def _look(self) -> None:
        sent = self._clock.monotonic()
        found = await self._driver.schedules()
        self._looks += 1
        # The store read its clock somewhere between: half of the way is wrong by half at most.
        self._looked = (sent + self._clock.monotonic()) / 2
        self._store_time = found.now
        known = self._known
        self._known = {}
        for record in found.items:
            before = known.get(record.id)
            if before is not None and before.record == record:
                self._known[record.id] = before
            elif (read := self._read(record)) is not None:
                self._known[record.id] = read
        self._unreadable &= {(record.id, record.revision) for record in found.items}

    def _read(self, record: ScheduleRecord) -> _Known | None:
        try:
            definition = read_definition(record.definition)
            recurrence = definition.recurrence()
        except QueueError as error:
            if (record.id, record.revision) not in self._unreadable:
                self._unreadable.add((record.id, record.revision))
                self._reporter.report(
                    SerializationError(f"schedule {record.id!r} cannot be fired here: {error}")
                )
            return None
        return _Known(record=record, definition=definition, recurrence=recurrence, wake=record.last)

    def _forget_look(self) -> None:
        self._looked = float("-inf")

    def _stale_in(self) -> float:
        """Seconds until the next look."""
        if self._known:
            least = _LOOK_EACH * len(self._known)
        else:
            least = _LOOK_FOR_FIRST if self._looks > 1 else _LOOK_FOR_FIRST / 2
        interval = min(_LOOK_AT_LATEST, max(self._interval, least))
        return self._looked + interval - self._clock.monotonic()

    def _now(self) -> datetime:
        """The store's time, from the last look on by this machine's monotonic clock."""
        assert self._store_time is not None
        return self._store_time + timedelta(seconds=self._clock.monotonic() - self._looked)

    # --- what is due ----------------------------------------------------------------------------

    def _gather(self) -> list[tuple[_Known, Due, Tick]]:
        """The ticks to fire, those of each schedule in order."""
        now = self._now()
        gathered: list[tuple[_Known, Due, Tick]] = []
        for known in self._known.values():
            record, definition = known.record, known.definition
            if record.paused or known.wake is None or known.wake > now:
                continue
            found = due(
                known.recurrence,
                missed=definition.missed,
                last=record.last,
                now=now,
                anchor=record.created_at,
            )
            known.wake = found.wake
            previous = record.last
            for instant in found.fire or (() if found.passed is None else (found.passed,)):
                tick = Tick(
                    schedule_id=record.id,
                    revision=record.revision,
                    previous=previous,
                    instant=instant,
                    job=job_of_tick(record, definition, instant) if found.fire else None,
                )
                gathered.append((known, found, tick))
                previous = instant
        return gathered

    def _batches(
        self, gathered: Sequence[tuple[_Known, Due, Tick]]
    ) -> list[tuple[list[Tick], list[tuple[_Known, Due]]]]:
        """The ticks in calls of a bounded size."""
        batches: list[tuple[list[Tick], list[tuple[_Known, Due]]]] = []
        size = _MOST_BYTES + 1
        for known, found, tick in gathered:
            size += 0 if tick.job is None else len(tick.job.payload)
            if not batches or len(batches[-1][0]) >= _AT_ONCE or size > _MOST_BYTES:
                batches.append(([], []))
                size = 0 if tick.job is None else len(tick.job.payload)
            batches[-1][0].append(tick)
            batches[-1][1].append((known, found))
        return batches

    def _judge(
        self,
        ticks: Sequence[Tick],
        of: Sequence[tuple[_Known, Due]],
        answers: Sequence[Fired],
    ) -> None:
        for tick, (known, found), answer in zip(ticks, of, answers, strict=True):
            if answer is not Fired.FIRED:
                self._forget_look()  # another was first, or the clocks disagree
                known.wake = known.record.last
                continue
            if found.skipped and tick.instant == (found.fire[0] if found.fire else found.passed):
                self._reporter.emit(
                    TicksSkipped(
                        schedule_id=tick.schedule_id,
                        skipped=found.skipped,
                        capped=found.capped,
                        until=tick.instant,
                    )
                )
            known.record = replace(known.record, last=tick.instant)
            if tick.job is not None:
                self._reporter.emit(
                    ScheduleFired(
                        schedule_id=tick.schedule_id, instant=tick.instant, job_id=tick.job.id
                    )
                )

    def _rest(self) -> float:
        """Seconds until the next instant or look, whichever is first."""
        stale_in = self._stale_in()
        if stale_in == float("-inf"):
            return _EARLY
        wakes = [k.wake for k in self._known.values() if k.wake is not None and not k.record.paused]
        if not wakes:
            return max(_FLOOR, stale_in)
        until = (min(wakes) - self._now()).total_seconds()
        return max(_FLOOR, min(until, stale_in))
