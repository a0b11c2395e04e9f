"""One place among the worker processes, and the process that has it now.

Starts it, tells it what to do, hears what it reports, kills it, and knows when the next one may
start. When that should happen the supervisor decides.
"""

import math
import signal
import socket
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.context import SpawnContext, SpawnProcess

from tenure._processes.app import App
from tenure._processes.child import main
from tenure._processes.terms import (
    ChildSettings,
    End,
    ExitStatus,
    Onlooker,
    Ready,
    Refused,
    Report,
    Stage,
)

__all__ = ["Place"]

# Beyond the drain time, until it is killed: a process ends itself four seconds after that.
_MARGIN = 6.0
_PAUSE = 0.5  # seconds before a place is filled again, doubled with each quick death
_LONGEST_PAUSE = 30.0
_LIVED = 10.0  # seconds of work after which a death is not a quick one


class Place:
    """Has one process at a time. All instants are of the monotonic clock."""

    def __init__(
        self,
        number: int,
        app: App,
        settings: ChildSettings,
        context: SpawnContext,
        onlooker: Onlooker | None = None,
    ) -> None:
        self.number = number
        self._app = app
        self._settings = settings
        self._context = context
        self._onlooker = onlooker
        self._process: SpawnProcess | None = None
        self._control: End | None = None
        self._reports: End | None = None
        self._ready_at: float | None = None
        self._drain = 0.0
        self._deaths = 0  # quick ones, in a row
        self.pid = 0
        self.refused = ""  # why the process could not start, in its own words
        self.due = 0.0  # not to be filled before
        self._stage = Stage.WORK
        self._asked_at = 0.0

    @property
    def kill_at(self) -> float | None:
        """When it must be gone, once it was asked to; its drain time may become known later."""
        match self._stage:
            case Stage.WORK:
                return None
            case Stage.DRAIN:
                return self._asked_at + self._drain + _MARGIN
            case Stage.CANCEL | Stage.KILL:
                return self._asked_at + _MARGIN

    @property
    def filled(self) -> bool:
        return self._process is not None

    @property
    def ready(self) -> bool:
        """Whether its worker has been started."""
        return self._ready_at is not None

    @property
    def asked(self) -> bool:
        """Whether its process, also one that has ended since, was asked to stop."""
        return self._stage is not Stage.WORK

    def start(self) -> None:
        """Fill it with a fresh interpreter. Raises `OSError` where the system has none to give."""
        self._ready_at, self._stage, self._drain = None, Stage.WORK, 0.0
        self.pid, self.refused = 0, ""
        try:
            self._start()
        except OSError:
            self._put_off()
            raise

    def _start(self) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            orders, control = self._context.Pipe(duplex=False)
            theirs.callback(orders.close)  # the child has its own, so that its end shows
            ours.callback(control.close)
            reports, report = self._context.Pipe(duplex=False)
            theirs.callback(report.close)
            ours.callback(reports.close)
            line: socket.socket | None = None
            theirs_line: socket.socket | None = None
            if self._onlooker is not None:
                line, theirs_line = socket.socketpair()
                theirs.callback(theirs_line.close)
                ours.callback(line.close)
            process = self._context.Process(
                target=main,
                args=(self._app, self._settings, orders, report, theirs_line),
                name=f"tenure-worker-{self.number}",
            )
            with _interrupts_held_back():
                process.start()
            ours.pop_all()
        self._process, self._control, self._reports = process, control, reports
        self.pid = process.pid or 0
        if self._onlooker is not None and line is not None:
            self._onlooker.started(self.number, self.pid, line)

    def leave_empty(self) -> None:
        """Fill it no more until somebody sets another `due`."""
        self.due = math.inf

    def _put_off(self) -> None:
        """Fill it later, the later the more often its processes have died quickly."""
        now = time.monotonic()
        lived = self._ready_at is not None and now - self._ready_at >= _LIVED
        self._deaths = 1 if lived else self._deaths + 1
        # The first is replaced at once: that it happens again is the exception.
        pause = 0.0 if self._deaths == 1 else _PAUSE * 2.0 ** min(self._deaths - 2, 10)
        self.due = now + min(pause, _LONGEST_PAUSE)

    def watched(self) -> "list[End | int]":
        """What becomes readable when it reports or ends."""
        if self._process is None:
            return []
        watched: list[End | int] = [self._process.sentinel]
        if self._reports is not None:
            watched.append(self._reports)
        return watched

    def hear(self) -> bool:
        """Take what it reports; whether its worker has been started just now."""
        began = False
        try:
            while self._reports is not None and self._reports.poll():
                report: Report = self._reports.recv()
                match report:
                    case Ready(drain=drain):
                        self._ready_at, self._drain = time.monotonic(), drain
                        began = True
                    case Refused(message=message):
                        self.refused = message
        except (EOFError, OSError):
            assert self._reports is not None
            self._reports.close()
            self._reports = None  # it is about to end
        return began

    def order(self, stage: Stage) -> None:
        """Tell it, and note when it must be gone."""
        if self._process is None or self._control is None:
            return
        self._stage, self._asked_at = stage, time.monotonic()
        if stage is Stage.KILL:
            self._process.kill()
            return
        with suppress(OSError):  # it has ended, which the next look will find
            self._control.send(stage)

    def ended(self) -> int | None:
        """The exit code, or minus the signal, of a process that has ended; then there is none."""
        process = self._process
        if process is None or process.exitcode is None:
            return None
        code = process.exitcode
        self.hear()
        drained = code == 0 and self._ready_at is not None
        if drained or (self.asked and code in (ExitStatus.DONE, ExitStatus.HANDED_BACK)):
            self._deaths, self.due = 0, 0.0  # it did what it was asked to: no death
        else:
            self._put_off()
        process.join()
        process.close()
        for end in (self._control, self._reports):
            if end is not None:
                end.close()
        self._process = self._control = self._reports = None
        return code

    def close(self) -> None:
        """Leave no process behind, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.ended()


@contextmanager
def _interrupts_held_back() -> Generator[None]:
    """Let a new process begin with SIGINT blocked, until it ignores it.

    A terminal's Ctrl-C goes to every process in front, also to one that still imports.
    """
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    # It starts a process of its own with the first one of ours, and then unblocks signals.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
