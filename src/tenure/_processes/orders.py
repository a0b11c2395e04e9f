"""What a worker process has been told to do, by its supervisor and by signals to itself.

A thread of its own listens, so that a blocked event loop does not keep the process alive: it ends
the process when that has not ended by itself in time. The end of the supervisor, however it came,
is an order to drain. Never touches the worker.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Pipe, wait

from tenure._processes.terms import End, ExitStatus, Stage

__all__ = ["Orders"]

# Beyond the second that a worker takes at most after its drain time: to leave the interpreter.
_MARGIN = 3.0


class Orders:
    """The highest stage that was asked for, and the bound that comes with it."""

    def __init__(self, control: End) -> None:
        self._control = control
        self._signals, self._signalled = Pipe(duplex=False)
        self._lock = threading.Lock()
        self._told: Callable[[], None] | None = None
        self._end: float | None = None
        self.stage = Stage.WORK
        # Seconds that handlers get to finish: none before there is a worker.
        self.drain = 0.0
        # With what the process ends where it has to be ended.
        self.status = ExitStatus.HANDED_BACK

    def listen(self) -> None:
        """Begin, in the main thread. Ctrl-C is the supervisor's alone; SIGTERM drains."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._signal)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # see `place.py`
        threading.Thread(target=self._listen, name="tenure-orders", daemon=True).start()

    def _signal(self, number: int, frame: object) -> None:
        self._signalled.send(Stage.DRAIN)

    def tell(self, told: Callable[[], None]) -> None:
        """Call `told`, from any thread, at each higher stage; at once where there has been one."""
        with self._lock:
            self._told = told
            asked = self.stage
        if asked is not Stage.WORK:
            told()

    def end(self, status: ExitStatus) -> None:
        """The work is over: from now on the process has only to leave, with this."""
        self.status = status
        self._signalled.send(Stage.CANCEL)

    # --- in the thread --------------------------------------------------------------------------

    def _listen(self) -> None:
        sources = [self._control, self._signals]
        while True:
            # The process waits for nobody's clock but the system's: its own may be what is stuck.
            left = None if self._end is None else max(0.0, self._end - time.monotonic())
            ready = wait(sources, left)
            if not ready:
                os._exit(self.status)
            for source in sources[:]:
                if source in ready and not self._heard(source):
                    sources.remove(source)

    def _heard(self, source: End) -> bool:
        """Obey one order; False when there will be no more from there."""
        try:
            self._obey(source.recv())
        except (EOFError, OSError):  # the supervisor is gone, whatever became of it
            self._obey(Stage.DRAIN)
            return False
        return True

    def _obey(self, stage: Stage) -> None:
        with self._lock:
            if stage <= self.stage:
                return
            self.stage = stage
            told = self._told
        drain = self.drain if stage is Stage.DRAIN else 0.0
        end = time.monotonic() + drain + 1.0 + _MARGIN
        self._end = end if self._end is None else min(self._end, end)
        if told is not None:
            told()
