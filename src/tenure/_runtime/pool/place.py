"""One place of the pool, and the thread that keeps a process in it.

The thread starts the process, gives it orders, passes on what it says, watches its memory, and
replaces it when it has died or is worn. Who gets the place is decided by `pool.py`, on the loop.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any

from msgspec import Struct

from tenure._runtime.failures import describe
from tenure._runtime.pool.process import Context, Gone, Process
from tenure._runtime.pool.terms import (
    Answer,
    Begun,
    Died,
    Logged,
    NotBegun,
    Order,
    Ready,
    Refused,
    Report,
    Said,
    Setup,
)
from tenure.process_pool import ProcessPool

__all__ = ["Ask", "Place", "Spoken", "Told"]

Spoken = Callable[[Said | Logged], None]

_LOOK = 0.05  # seconds between two looks at the memory of a process that runs a job
_PAUSE = 0.5  # seconds before the next try, doubled with each process that was never ready
_LONGEST_PAUSE = 30.0
_READY_WITHIN = 600.0  # seconds: whatever an initializer loads, that it hangs must show
_RETIRE = 5.0
_LEAVE = 0.1


class Told(Struct, frozen=True):
    """Whom the thread tells, on the loop.

    The place can be had; its idle process has died; no process can be had, and why; it has ended.
    """

    ready: Callable[["Place"], None]
    lost: Callable[["Place"], None]
    refused: Callable[["Place", str], None]
    ended: Callable[["Place"], None]


class Ask(Struct, frozen=True):
    """An order, who hears what the handler says meanwhile, and the future of the answer."""

    order: Order
    spoken: Spoken
    answer: "asyncio.Future[Answer | Died | NotBegun]"


class Place:
    """Has one process at a time. `ask`, `kill` and `close` are called on the loop."""

    def __init__(
        self, number: int, context: Context, setup: Setup, options: ProcessPool, told: Told
    ) -> None:
        self._name = f"tenure-process-{number}"
        self._context = context
        self._setup = setup
        self._options = options
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._process: Process | None = None
        self._asked: Ask | None = None
        self._closed = False
        self.busy = False  # on the loop: it has been asked, and that answer is not there yet
        self._wake, self._waker = Pipe(duplex=False)
        self._fresh = 0  # bytes that its process had in memory before its first job

    def start(self) -> None:
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def ask(self, ask: Ask) -> None:
        """Run one attempt; the place is taken until it is told ready again."""
        self.busy = True
        self._asked = ask
        self._waker.send_bytes(b".")

    def kill(self) -> None:
        """Kill the process of what was asked; the answer is then that it died."""
        process = self._process
        if process is not None and self._asked is not None:
            process.kill()

    def close(self) -> None:
        """Let an idle process end, kill one that runs something, and end the thread."""
        self._closed = True
        self.kill()
        with suppress(OSError):  # the thread has ended with the loop
            self._waker.send_bytes(b".")

    # --- in the thread --------------------------------------------------------------------------

    def _work(self) -> None:
        failures = 0
        while not self._closed:
            refusal = self._try()
            if refusal is None:
                failures = 0
            elif not self._closed:
                failures += 1
                self._post(self._told.refused, self, refusal)
                pause = min(_LONGEST_PAUSE, _PAUSE * 2.0 ** min(failures - 1, 10))
                if self._wake.poll(pause):
                    self._wake.recv_bytes()
            self._answer_asked(NotBegun())
        self._wake.close()
        self._waker.close()
        self._post(self._told.ended, self)

    def _try(self) -> str | None:
        """Fill the place once, until its process has ended; why it was never ready, if so."""
        try:
            process = self._process = Process(self._context, self._setup, self._name)
        except Exception as error:  # the system has none to give, or the program cannot be copied
            return describe(error)
        refusal: str | None = "it died"
        try:
            refusal = self._await_ready(process)
            if refusal is None:
                self._post(self._told.ready, self)
                self._serve(process)
        except Gone:
            self._post(self._told.lost, self)
        except Exception as error:  # a defect: of this thread, or of who hears what a handler says
            self._post(self._told.lost, self)
            refusal = describe(error)
            self._answer_asked(Died(f"killed, since its worker failed: {refusal}"))
        finally:
            how = process.bury()
            self._process = None
        return None if refusal is None else f"{refusal} ({how})"

    def _await_ready(self, process: Process) -> str | None:
        """None once it takes orders, else why it does not."""
        report: Report | None = None
        while not self._closed and report is None:
            report = process.reports(_READY_WITHIN, self._wake)
            if report is None and not self._woken():
                return f"it was not ready within {_READY_WITHIN:g} s"
            # Asked of the process before, when it was not yet known to be lost.
            self._answer_asked(NotBegun())
        if isinstance(report, Refused):
            return report.message
        if not isinstance(report, Ready):
            return "it was not wanted any more"
        process.group = report.group
        self._fresh, limit = process.memory(), self._options.memory_limit
        if limit is not None and self._fresh > limit:
            return f"it takes {self._fresh:,} bytes before its first job, of a limit of {limit:,}"
        return None

    def _woken(self) -> bool:
        if self._wake.poll():
            self._wake.recv_bytes()
            return True
        return False

    def _serve(self, process: Process) -> None:
        """Run what is asked until the process has died or is worn."""
        served = 0
        while not self._closed:
            process.reports(None, self._wake)  # an idle process says nothing
            self._woken()
            if (ask := self._asked) is None or self._closed:
                continue
            answer = self._run(process, ask)
            served += 1
            self._asked = None
            self._post(self._answer, ask.answer, answer)
            if not isinstance(answer, Answer):
                return
            if self._worn(process, served):
                process.retire(_RETIRE, self._wake)
                return
            self._post(self._told.ready, self)
        process.retire(_LEAVE, self._wake)

    def _run(self, process: Process, ask: Ask) -> Answer | Died | NotBegun:
        try:
            process.send(ask.order)
        except Gone:
            return NotBegun()
        limit = self._options.memory_limit
        how = None
        begun = False
        try:
            while True:
                report = process.reports(None if limit is None else _LOOK)
                if isinstance(report, Answer):
                    return report
                if isinstance(report, Begun):
                    begun = True
                elif isinstance(report, Said | Logged):
                    ask.spoken(report)
                if limit is not None and how is None and process.memory() > limit:
                    how = f"killed, for it used more than its memory limit of {limit:,} bytes"
                    process.kill()
        except Gone:
            died = process.bury()
            return Died(how or died) if begun or how else NotBegun()

    def _worn(self, process: Process, served: int) -> bool:
        most, limit = self._options.max_jobs, self._options.memory_limit
        if most is not None and served >= most:
            return True
        return limit is not None and process.memory() > self._fresh + (limit - self._fresh) / 2

    def _answer_asked(self, answer: Died | NotBegun) -> None:
        if self._asked is not None:
            ask, self._asked = self._asked, None
            self._post(self._answer, ask.answer, answer)

    def _post(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            self._closed = True  # the loop is closed: nobody asks for anything any more

    def _answer(
        self,
        future: "asyncio.Future[Answer | Died | NotBegun]",
        answer: Answer | Died | NotBegun,
    ) -> None:
        """On the loop."""
        self.busy = False
        if not future.done():
            future.set_result(answer)
