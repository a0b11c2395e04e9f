"""One worker process: makes its worker, runs it until it is told to stop, and leaves.

The entry point of a fresh interpreter, which has nothing of the supervisor's but two pipes: orders
come through one, and one report goes through the other. Installs no signal handler but those of
`orders.py`, and configures no logging.
"""

import asyncio
import inspect
import logging
import os
import socket
import sys
from collections.abc import Awaitable
from typing import Any

from tenure._processes.app import App, made, worker_of
from tenure._processes.orders import Orders
from tenure._processes.terms import ChildSettings, End, ExitStatus, Ready, Refused, Report, Stage
from tenure._runtime.handle import WorkerHandle
from tenure.errors import QueueError, StoreUnavailable
from tenure.worker import Worker

__all__ = ["main"]

_LOOK = 1.0  # seconds between two looks at the worker's health

_logger = logging.getLogger("tenure.processes")


def main(
    app: App,
    settings: ChildSettings,
    control: End,
    report: End,
    line: socket.socket | None,
) -> None:
    """Run one worker process; leaves with an `ExitStatus`."""
    orders = Orders(control)
    orders.listen()
    if line is not None and settings.watched is not None:
        settings.watched(line, lambda: orders.stage is not Stage.WORK)
    child = _Child(settings, orders, report)
    status = ExitStatus.FAILED
    try:
        status = child.run(app)
    except QueueError as error:  # of the app, or of the worker that it asks for
        child.say(Refused(message=f"{type(error).__name__}: {error}"))
        status = ExitStatus.NOT_STARTED
    finally:
        orders.end(status)
    sys.exit(status)


class _Child:
    """The work of one process."""

    def __init__(self, settings: ChildSettings, orders: Orders, report: End) -> None:
        self._settings = settings
        self._orders = orders
        self._report = report
        self._told = asyncio.Event()
        self._first_error: QueueError | None = None

    def run(self, app: App) -> ExitStatus:
        """Call the app outside of any event loop, so that it may run one of its own; then work."""
        worker = made(app)
        with asyncio.Runner(loop_factory=self._settings.loop_factory) as runner:
            return runner.run(self._work(worker))

    def say(self, report: Report) -> None:
        """Tell the supervisor, if there is one left."""
        try:
            self._report.send(report)
        except OSError:
            return  # `orders.py` hears of it as well

    async def _work(self, app: Worker | Awaitable[Worker]) -> ExitStatus:
        self._listen()
        worker = await self._worker(app)
        if worker is None:
            return ExitStatus.DONE
        drain = self._settings.drain
        self._orders.drain = worker.drain_timeout if drain is None else drain
        if self._stopping:  # before anything was opened
            return ExitStatus.DONE
        handle = worker.run()
        if self._settings.started is not None:
            self._settings.started(handle)
        reading = asyncio.create_task(self._read(handle), name="tenure-errors")
        status = await self._serve(worker, handle)
        self._orders.end(status)  # and what else runs on this loop has a bound as well
        await reading
        if self._settings.over is not None:
            self._settings.over()
        stuck = await handle.release_abandoned()
        await worker.queue.close()
        if stuck:
            self._leave(status)
        return status

    @property
    def _stopping(self) -> bool:
        return self._orders.stage is not Stage.WORK

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()

        def told() -> None:
            try:
                loop.call_soon_threadsafe(self._told.set)
            except RuntimeError:
                return  # the loop is closed: the process is leaving already

        self._orders.tell(told)

    async def _worker(self, app: Worker | Awaitable[Worker]) -> Worker | None:
        """What the app gives; None where the process was told to stop before it gave anything."""
        if not inspect.isawaitable(app):
            return worker_of(app)
        making = asyncio.ensure_future(app)
        await self._until(making)
        if not making.done():
            making.cancel()
            await asyncio.wait([making])
            return None
        return worker_of(making.result())

    async def _until(self, *others: "asyncio.Future[Any]", timeout: float | None = None) -> None:
        """Wait until one of the others is done, or the process was told something."""
        told = asyncio.create_task(self._told.wait())
        try:
            await asyncio.wait(
                [told, *others], timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            told.cancel()

    async def _read(self, handle: WorkerHandle) -> None:
        """Make room in the buffer: `tenure.worker` has logged each of them."""
        async for error in handle.errors():
            self._first_error = self._first_error or error

    # --- the worker runs ------------------------------------------------------------------------

    async def _serve(self, worker: Worker, handle: WorkerHandle) -> ExitStatus:
        """Run until told to stop, and stop; or until the worker stops or must be replaced."""
        stopped = asyncio.create_task(handle.wait())
        try:
            ready = await self._say_ready(worker, stopped)
            healthy = not ready or await self._watch(handle, stopped)
            if not healthy:
                _logger.error("the worker has been unhealthy for too long; its process ends")
            if self._stopping or not healthy:
                await self._shut_down(handle)
                return self._status(handle, healthy=healthy)
        finally:
            stopped.cancel()
        if not ready:
            message = "the worker stopped at once" if self._first_error is None else ""
            self.say(Refused(message=message or str(self._first_error)))
            return ExitStatus.NOT_STARTED
        return ExitStatus.FAILED

    async def _say_ready(self, worker: Worker, stopped: "asyncio.Task[None]") -> bool:
        """Tell that the worker can work, or waits for its store; False where it does neither."""
        opening = asyncio.ensure_future(worker.queue.driver())
        await self._until(opening, stopped)
        if not opening.done():
            opening.cancel()
        await asyncio.wait([opening])
        if self._stopping or opening.cancelled():
            opened = False
        else:
            error = opening.exception()
            opened = error is None or isinstance(error, StoreUnavailable)
        if opened:
            self.say(Ready(drain=self._orders.drain))
        elif not self._stopping:
            await self._until(stopped)  # the same error stops the worker
        return opened

    async def _watch(self, handle: WorkerHandle, stopped: "asyncio.Task[None]") -> bool:
        """Wait for the end of the work; False where the worker should be replaced."""
        loop = asyncio.get_running_loop()
        patience = self._settings.replace_unhealthy
        since: float | None = None
        while not (self._stopping or stopped.done()):
            await self._until(stopped, timeout=_LOOK)
            if handle.healthy or patience is None:
                since = None
            elif since is None:
                since = loop.time()
            elif loop.time() - since >= patience:
                return False
        return True

    async def _shut_down(self, handle: WorkerHandle) -> None:
        """In order, and faster when that is asked for meanwhile."""
        ending = asyncio.create_task(handle.shutdown(self._orders.drain))
        while not ending.done():
            self._told.clear()
            if self._orders.stage >= Stage.CANCEL:
                break
            await self._until(ending)
        if not ending.done():
            await handle.shutdown(0.0)
        await ending

    def _status(self, handle: WorkerHandle, *, healthy: bool) -> ExitStatus:
        if not healthy:
            return ExitStatus.UNHEALTHY
        return ExitStatus.HANDED_BACK if handle.cut_short else ExitStatus.DONE

    def _leave(self, status: ExitStatus) -> None:
        """End here: a thread that nothing can interrupt may have something that waits for it."""
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)
