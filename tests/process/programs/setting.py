"""What every program of these tests begins with: its arguments, its handlers, its ledger."""

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import tenure
from tests.process.ledger import Ledger

__all__ = ["Setting"]


class Shifted(tenure.SystemClock):
    """The clock of a machine whose wall time is wrong by some seconds."""

    def __init__(self, seconds: float) -> None:
        self._shift = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._shift


class Setting:
    """The arguments that the test gave, and a worker whose handlers write to the ledger."""

    def __init__(self) -> None:
        if multiprocessing.parent_process() is None:
            # As at a terminal: who runs the tests in the background may have had it ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        # Errors come through the observer; stderr is left for what should not happen.
        logging.getLogger("tenure").addHandler(logging.NullHandler())
        arguments = json.loads(os.environ["TENURE_TEST"])
        self.url: str = arguments["url"]
        self.options: dict[str, Any] = arguments["options"]
        self.clock = Shifted(self.options.pop("shift", 0.0))
        self.ledger = Ledger(arguments["ledger"])
        self.go = Path(arguments["go"])

    def ready(self) -> None:
        self.ledger.write("ready")

    def wait_for_start(self) -> None:
        """Block until a handler has started here."""
        while not self.ledger.read("start", pid=os.getpid()):
            time.sleep(0.02)

    def worker(self, queue: tenure.Queue) -> tenure.Worker:
        worker = tenure.Worker(queue, observers=[self._observe], **self.options)
        worker.register("quick", self._quick)
        worker.register("gate", self._gate)
        worker.register("thread", self._thread)
        worker.register("block", self._block)
        worker.register("spin", self._spin)
        worker.register("stuck", self._stuck)
        worker.register("nap", self._nap)
        worker.register("die", self._die)
        return worker

    @asynccontextmanager
    async def until_stdin_closes(self) -> AsyncGenerator[None]:
        """Leave the body running until the test closes our stdin."""
        loop = asyncio.get_running_loop()
        closed = asyncio.Event()

        def read() -> None:
            sys.stdin.read()
            loop.call_soon_threadsafe(closed.set)

        threading.Thread(target=read, name="stdin", daemon=True).start()
        yield
        await closed.wait()

    # --- what is noted --------------------------------------------------------------------------

    def _observe(self, event: tenure.Event) -> None:
        match event:
            case tenure.JobSettled(job=job, outcome=outcome):
                self.ledger.write("settled", id=job.id, outcome=type(outcome).__name__)
            case tenure.ErrorReported(error=error):
                data = {k: v for k, v in vars(error).items() if isinstance(v, str | float | int)}
                self.ledger.write("error", kind=type(error).__name__, text=str(error), **data)
            case _:
                pass

    @contextmanager
    def _noted(self, job: tenure.RunningJob) -> Any:
        self.ledger.write("start", id=job.id, attempt=job.attempt)
        yield
        self.ledger.write("end", id=job.id, attempt=job.attempt)

    # --- handlers -------------------------------------------------------------------------------

    async def _quick(self, payload: object, job: tenure.RunningJob) -> None:
        with self._noted(job):
            return

    async def _nap(self, payload: float, job: tenure.RunningJob) -> None:
        with self._noted(job):
            await asyncio.sleep(payload)

    async def _gate(self, payload: object, job: tenure.RunningJob) -> None:
        with self._noted(job):
            while not self.go.exists():  # noqa: ASYNC110  # the test sets a file, not an event
                await asyncio.sleep(0.01)

    def _thread(self, payload: object, job: tenure.RunningJob) -> None:
        with self._noted(job):
            while not self.go.exists():
                time.sleep(0.01)

    async def _block(self, payload: float, job: tenure.RunningJob) -> None:
        with self._noted(job):
            time.sleep(payload)  # noqa: ASYNC251  # that it blocks the loop is the point

    async def _spin(self, payload: float, job: tenure.RunningJob) -> None:
        with self._noted(job):
            end = time.monotonic() + payload
            while time.monotonic() < end:
                pass

    def _stuck(self, payload: object, job: tenure.RunningJob) -> None:
        with self._noted(job):
            threading.Event().wait()

    async def _die(self, payload: object, job: tenure.RunningJob) -> None:
        self.ledger.write("start", id=job.id, attempt=job.attempt)
        os._exit(137)  # as one that the system kills for its memory
