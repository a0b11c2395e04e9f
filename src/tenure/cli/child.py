"""What a worker process does before and beside its worker: logging, signals, its own replacement.

Runs in the processes that `tenure worker` starts, never in the one that starts them.
"""

import asyncio
import faulthandler
import inspect
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tenure._runtime.handle import WorkerHandle
from tenure.cli.apps import worker_in
from tenure.cli.logs import log_to_stderr
from tenure.cli.watch.inside import Counting, Inside
from tenure.clock import SystemClock
from tenure.errors import JobOverdue
from tenure.events import ErrorReported, Event, JobSettled, Observer
from tenure.process_pool import Prelude
from tenure.worker import Worker

__all__ = ["ChildApp"]

_LOOK = 1.0  # seconds between two looks at the memory

_logger = logging.getLogger("tenure.cli")


class ChildApp:
    """The app of a worker process, with what the command line changes of it.

    Made in the program, and handed to each process, which has the worker in its own.
    """

    def __init__(
        self,
        name: str,
        *,
        concurrency: int | None,
        queues: tuple[str, ...] | None,
        max_jobs: int | None,
        max_memory: int | None,
        log_format: str,
        debug: bool,
        counts: bool,
    ) -> None:
        self._name = name
        self._concurrency = concurrency
        self._queues = queues
        self._max_jobs = max_jobs
        self._max_memory = max_memory  # bytes
        self._log_format = log_format
        self._debug = debug
        self._counts = counts  # for the health port
        self._inside: Inside | None = None
        self._counting: Counting | None = None
        self._worker: Worker | None = None
        self._bounds: _Bounds | None = None

    def watched(self, line: socket.socket, stopping: Callable[[], bool]) -> None:
        """The program asks over this line how the process is."""
        self._inside = Inside(line, stopping, SystemClock())

    def __call__(self) -> Worker | Awaitable[Worker]:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)  # until there is a worker
        log_to_stderr(self._log_format, debug=self._debug)
        found = worker_in(self._name)
        return self._awaited(found) if inspect.isawaitable(found) else self._adjusted(found)

    async def _awaited(self, found: Awaitable[Worker]) -> Worker:
        return self._adjusted(await found)

    def _adjusted(self, worker: Worker) -> Worker:
        bounds = _Bounds(self._max_jobs, self._max_memory, worker.replacement_slots)
        adjusted = worker.adjusted(
            concurrency=self._concurrency,
            queues=self._queues,
            observers=[bounds],
            prelude=Prelude("tenure.cli.logs:log_in_process", self._log_format),
        )
        self._bounds = bounds
        self._worker = adjusted.adjusted(observers=self._counters(adjusted))
        return self._worker

    def _counters(self, worker: Worker) -> Sequence[Observer]:
        if not self._counts:
            return []
        from tenure.cli.watch.counting import CountingOf, metrics_of

        metrics, new = metrics_of(worker)
        self._counting = CountingOf(metrics, worker.queues)
        return [metrics] if new else []

    def started(self, handle: WorkerHandle) -> None:
        """The worker runs on the running loop."""
        loop = asyncio.get_running_loop()

        def quiet() -> None:
            _logger.info("no job is started any more until the process is replaced")
            handle.stop_claiming()

        loop.add_signal_handler(signal.SIGUSR1, quiet)
        loop.add_signal_handler(signal.SIGUSR2, _show, loop)
        if self._bounds is not None:
            self._bounds.handle = handle
        if self._inside is not None and self._worker is not None:
            worker = self._worker
            self._inside.began(handle, worker.queue, worker.poll_interval, self._counting)

    def over(self) -> None:
        """The worker has ended, and the process is about to."""
        if self._inside is not None:
            self._inside.over()


class _Bounds:
    """An observer that asks its own process to drain, so that a fresh one takes its place."""

    def __init__(
        self, max_jobs: int | None, max_memory: int | None, replacement_slots: int
    ) -> None:
        self.handle: WorkerHandle | None = None
        self._max_jobs = max_jobs
        self._max_memory = max_memory
        self._replacements = replacement_slots
        self._jobs = 0
        self._looked = 0.0
        self._asked = False

    def __call__(self, event: Event) -> None:
        if self._asked:
            return
        why = ""
        if isinstance(event, JobSettled):
            self._jobs += 1
            why = self._used_up()
        elif isinstance(event, ErrorReported) and isinstance(event.error, JobOverdue):
            why = self._stuck()
        if why:
            self._asked = True
            _logger.info("the process has %s and is replaced", why)
            os.kill(os.getpid(), signal.SIGTERM)

    def _used_up(self) -> str:
        if self._max_jobs is not None and self._jobs >= self._max_jobs:
            return f"run {self._jobs} jobs"
        now = time.monotonic()
        if self._max_memory is not None and now - self._looked >= _LOOK:
            self._looked = now
            used = _memory()
            if used >= self._max_memory:
                return f"grown to {used:,} bytes"
        return ""

    def _stuck(self) -> str:
        """Whether handlers that nothing can interrupt have taken all that there was to spare.

        The replacements of their slots, where there are such; else every slot.
        """
        if self.handle is None:
            return ""
        vitals = self.handle.vitals()
        spared = 0 < self._replacements <= vitals.overdue
        if not (spared or vitals.overdue >= vitals.slots):
            return ""
        handlers = "1 handler" if vitals.overdue == 1 else f"{vitals.overdue} handlers"
        taken = "replacement slot" if spared else "slot"
        return f"{handlers} past the time limit that nothing can interrupt, and no {taken} left,"


def _memory() -> int:
    """The memory that the process has now, in bytes; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _show(loop: asyncio.AbstractEventLoop) -> None:
    """Write the tasks of the loop and the stacks of the threads to standard error."""
    print(f"--- process {os.getpid()}: tasks", file=sys.stderr)
    for task in asyncio.all_tasks(loop):
        task.print_stack(file=sys.stderr)
    print(f"--- process {os.getpid()}: threads", file=sys.stderr, flush=True)
    faulthandler.dump_traceback(sys.stderr, all_threads=True)
