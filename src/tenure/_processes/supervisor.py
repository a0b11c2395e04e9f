"""Keeps a number of worker processes running, replaces those that die, and ends them in order.

The processes are fresh interpreters: nothing of this one is inherited, and this one opens no store.
It runs in the main thread and waits for signals, reports and deaths; every wait is bounded.
"""

import logging
import signal
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import wait

from tenure._processes.app import App
from tenure._processes.place import Place
from tenure._processes.renewal import Renewal
from tenure._processes.signals import Signals
from tenure._processes.terms import ChildSettings, End, ExitStatus, Onlooker, Stage

__all__ = ["Supervisor"]

# Deaths are looked for this often at least, should something that outlives its process hold what
# would tell of them.
_LOOK = 1.0
_TRIES = 5  # starts that fail in a row while nobody works

_DRAINS = "running jobs may finish, then a fresh worker process takes over"
_STARTS = "a fresh worker process is started"

_logger = logging.getLogger("tenure.processes")


class Supervisor:
    """Runs once.

    With a `renewal` all processes are replaced at each change, and one that cannot be started is
    no end: the next change is waited for.
    """

    def __init__(
        self,
        app: App,
        processes: int,
        settings: ChildSettings,
        onlooker: Onlooker | None = None,
        renewal: Renewal | None = None,
    ) -> None:
        context = get_context("spawn")
        self._places = [Place(n + 1, app, settings, context, onlooker) for n in range(processes)]
        self._onlooker = onlooker
        self._renewal = renewal
        self._stage = Stage.WORK
        self._status = ExitStatus.DONE
        self._proven = False  # a worker has been started once, so that the app is in order
        self._failures = 0  # starts that failed, in a row

    def run(self) -> ExitStatus:
        """Until a signal ends it, or no worker can be started."""
        with Signals() as signals:
            try:
                while self._turn(signals):
                    wait([signals.noticed, *self._watched()], self._patience())
            finally:
                for place in self._places:
                    place.close()
        return self._status

    def _turn(self, signals: Signals) -> bool:
        """Do all that is to be done now; False when nothing is left."""
        signals.clear()
        self._ask(Stage(min(signals.count, Stage.KILL)))
        for place in self._places:
            self._hear(place)
            self._bury(place)
        if self._stage is Stage.WORK:
            self._renew()
            self._fill()
        self._enforce()
        if self._onlooker is not None:
            self._onlooker.turned()
        return self._stage is Stage.WORK or any(place.filled for place in self._places)

    def _watched(self) -> "Iterator[End | int]":
        if self._renewal is not None and self._stage is Stage.WORK:
            yield self._renewal.noticed
        for place in self._places:
            yield from place.watched()

    def _patience(self) -> float:
        """Seconds until the next look."""
        now = time.monotonic()
        due = [place.due - now for place in self._wanted() if not place.filled]
        ends = [p.kill_at - now for p in self._places if p.filled and p.kill_at is not None]
        return max(0.0, min([_LOOK, *due, *ends]))

    # --- stopping -------------------------------------------------------------------------------

    def _ask(self, stage: Stage) -> None:
        """Ask every process for what has not been asked yet."""
        if stage <= self._stage:
            return
        self._stage = stage
        _logger.info("worker processes are asked to stop", extra={"stage": stage.name.lower()})
        if stage is Stage.KILL:
            self._status = ExitStatus.INTERRUPTED
        if self._onlooker is not None:
            self._onlooker.asked(stage)
        for place in self._places:
            place.order(stage)

    def _enforce(self) -> None:
        """Kill what is not gone in time."""
        now = time.monotonic()
        for place in self._places:
            if place.filled and place.kill_at is not None and now >= place.kill_at:
                _logger.error(
                    "worker process %d (pid %d) did not end in time and is killed",
                    place.number,
                    place.pid,
                )
                place.order(Stage.KILL)

    # --- starting, dying, replacing -------------------------------------------------------------

    def _renew(self) -> None:
        """After a change, let every process drain, so that a fresh one takes its place.

        The change may be of what a process could not be started with: so nothing is proven.
        """
        changed = "" if self._renewal is None else self._renewal.take()
        if not changed:
            return
        self._proven, self._failures = False, 0
        busy = any(place.filled and place.ready for place in self._places)
        _logger.info("%s: %s", changed, _DRAINS if busy else _STARTS)
        for place in self._places:
            if not place.filled:
                place.due = 0.0
            elif not place.asked:
                place.order(Stage.DRAIN)

    def _fill(self) -> None:
        """Start what is missing.

        Until one worker has been started there is one process only: so what is wrong with the app
        is said once, and a store that is new is made by one.
        """
        now = time.monotonic()
        for place in self._wanted():
            if not place.filled and place.due <= now and self._stage is Stage.WORK:
                try:
                    place.start()
                except OSError as error:
                    self._not_started(place, f"the system has no process for it: {error}")

    def _wanted(self) -> "list[Place]":
        if self._stage is not Stage.WORK:
            return []
        return self._places if self._proven else self._places[:1]

    def _hear(self, place: Place) -> None:
        if not place.hear():
            return
        self._proven, self._failures = True, 0
        if self._onlooker is not None:
            self._onlooker.ready(place.number)
        _logger.info("worker process %d (pid %d) runs", place.number, place.pid)

    def _bury(self, place: Place) -> None:
        """Take note of a process that has ended, if it has."""
        code = place.ended()
        if code is None:
            return
        if self._onlooker is not None:
            self._onlooker.ended(place.number)
        self._proven = self._proven or (place.ready and not place.asked)
        if self._stage is not Stage.WORK:
            if code and self._status is ExitStatus.DONE:
                self._status = ExitStatus.HANDED_BACK
            if code not in (0, ExitStatus.HANDED_BACK):
                self._say(logging.WARNING, place, f"{_how(code)} while it was to stop")
        elif place.asked:
            self._say(logging.INFO if code == 0 else logging.WARNING, place, _how(code))
        elif place.ready:
            self._replace(place, code)
        else:
            self._not_started(place, place.refused or _how(code), by_itself=code > 0)

    def _replace(self, place: Place, code: int) -> None:
        pause = max(0.0, place.due - time.monotonic())
        when = f"in {pause:.1f} s" if pause else "now"
        level = logging.WARNING if code else logging.INFO
        self._say(level, place, f"{_how(code)}; another one takes its place {when}")

    def _not_started(self, place: Place, why: str, *, by_itself: bool = False) -> None:
        """A process has ended before its worker was started, or there was none.

        Where no worker has ever been started and it ended by itself, every other one would end in
        the same way; otherwise it may be of passing nature.
        """
        if self._renewal is not None:
            place.leave_empty()
            self._say(logging.ERROR, place, f"waits for the next change, as it cannot start: {why}")
            return
        self._failures += 1
        working = any(other.ready and other.filled for other in self._places)
        hopeless = (by_itself and not self._proven) or self._failures >= _TRIES
        if working or not hopeless:
            pause = max(0.0, place.due - time.monotonic())
            self._say(logging.ERROR, place, f"could not start: {why}; tried again in {pause:.1f} s")
            return
        self._say(logging.ERROR, place, f"could not start: {why}; nothing else is tried")
        self._status = ExitStatus.NOT_STARTED
        self._ask(Stage.DRAIN)

    def _say(self, level: int, place: Place, what: str) -> None:
        extra = {"place": place.number, "child": place.pid}
        _logger.log(
            level, "worker process %d (pid %d) %s", place.number, place.pid, what, extra=extra
        )


def _how(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        named = code in set(ExitStatus) and code > 1
        name = f", {ExitStatus(code).name.lower().replace('_', ' ')}" if named else ""
        return f"ended with exit code {code}{name}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
