"""One process of the pool as its worker sees it: started, talked to, measured, killed, buried.

Used by the one thread that started it; only `kill` may come from elsewhere. It decides nothing.
"""

import os
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tenure._runtime.pool.child import main
from tenure._runtime.pool.terms import End, Order, Report, Setup, decode_report, pack

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

__all__ = ["Context", "Gone", "Process"]

Context: TypeAlias = "SpawnContext | ForkServerContext"

_OUT_OF_MEMORY = "killed by SIGKILL: perhaps the system was out of memory"


class Gone(Exception):
    """The process has ended, or closed its pipe, and there is nothing more from it."""


class Process:
    """A process from its start to its burial."""

    def __init__(self, context: Context, setup: Setup, name: str) -> None:
        """Start it. Raises `OSError` where the system has no process to give."""
        self.group = False
        self._lock = threading.Lock()
        self._how: str | None = None  # it died, once it is buried
        with ExitStack() as theirs, ExitStack() as ours:
            self._pipe, orders = context.Pipe()
            theirs.callback(orders.close)  # the process has its own, so that its end shows
            ours.callback(self._pipe.close)
            lifeline, self._lifeline = context.Pipe(duplex=False)
            theirs.callback(lifeline.close)
            ours.callback(self._lifeline.close)
            self._process = context.Process(
                target=main, args=(setup, orders, lifeline), name=name, daemon=False
            )
            _hold_signals_back()
            self._process.start()
            ours.pop_all()
        self._pid = self._process.pid or 0

    def kill(self) -> None:
        """Kill it, and what it has started, where the system has process groups. From any thread.

        Never another one: while it is not buried its id is not given to anybody else.
        """
        with self._lock:
            if self._how is not None:
                return
            if self.group and hasattr(os, "killpg") and hasattr(signal, "SIGKILL"):
                with suppress(OSError):  # it has just ended, with all of its group
                    os.killpg(self._pid, signal.SIGKILL)
            self._process.kill()

    def send(self, order: Order) -> None:
        """Raises `Gone`."""
        try:
            self._pipe.send_bytes(pack(order))
        except OSError as error:
            raise Gone from error

    def reports(self, timeout: float | None, wake: "End | None" = None) -> Report | None:
        """The next report; None after `timeout` seconds, or when `wake` can be read.

        Raises `Gone` when there will be none.
        """
        watched: list[End | int] = [self._pipe, self._process.sentinel]
        if wake is not None:
            watched.append(wake)
        ready = connection.wait(watched, timeout)
        try:
            if self._pipe in ready or (self._process.sentinel in ready and self._pipe.poll()):
                return decode_report(self._pipe.recv_bytes())
        except (EOFError, OSError, msgspec.MsgspecError) as error:
            raise Gone from error
        if self._process.sentinel in ready:
            raise Gone
        return None

    def memory(self) -> int:
        """Bytes that it has in memory; 0 where that cannot be told, as anywhere but on Linux."""
        try:
            pages = Path(f"/proc/{self._pid}/statm").read_bytes().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError, IndexError):
            return 0

    def retire(self, patience: float, wake: End) -> None:
        """Let it end in order, for so many seconds, or until `wake` can be read."""
        self._pipe.close()
        connection.wait([self._process.sentinel, wake], patience)

    def bury(self) -> str:
        """Kill it if it still runs, wait for its end, and say how it died. Again: say so again."""
        if self._how is not None:
            return self._how
        self.kill()
        connection.wait([self._process.sentinel])
        with self._lock:
            self._process.join()
            self._how = _told(self._process.exitcode)
        self._process.close()
        self._pipe.close()
        self._lifeline.close()
        return self._how


def _told(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return _OUT_OF_MEMORY if name == "SIGKILL" else f"killed by {name}"


def _hold_signals_back() -> None:
    """Let new processes begin with these blocked, until they leave them to the worker.

    In the thread that starts them, which handles none: those of the program come to another.
    """
    if sys.platform == "win32" or not hasattr(signal, "pthread_sigmask"):
        return
    from multiprocessing import resource_tracker

    # It starts a process of its own with the first one of ours, and then unblocks signals.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
