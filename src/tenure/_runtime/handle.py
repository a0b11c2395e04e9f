"""What `Worker.run()` returns: the errors of one run, and the ways to end it."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from tenure._runtime.lifecycle import Lifecycle
from tenure._runtime.vitals import Vitals
from tenure.errors import QueueError

__all__ = ["WorkerHandle"]


class WorkerHandle:
    """A running worker. Use it as a context manager, or call `shutdown` yourself.

    A handle that is garbage-collected while its worker runs aborts it, with a `ResourceWarning`.
    """

    def __init__(self, lifecycle: Lifecycle, loop: asyncio.AbstractEventLoop) -> None:
        self._lifecycle = lifecycle
        self._loop = loop

    @property
    def worker_id(self) -> str:
        """The random id of this run, as claims carry it."""
        return self._lifecycle.settings.worker_id

    @property
    def running(self) -> bool:
        """False once the worker has stopped."""
        return self._lifecycle.running

    @property
    def healthy(self) -> bool:
        """False when a loop of the worker has died three times in a row, and while it is stuck.

        It is stuck when handlers past their time limit that cannot be interrupted hold every slot,
        those of `replacement_slots` too: then it can start nothing. The `JobOverdue` of the last
        one says so (`slots_left` is 0); when one of them returns, the worker is healthy again.
        """
        return self._lifecycle.healthy

    @property
    def dropped_errors(self) -> int:
        """How many errors came while 256 unread ones were waiting; each was logged."""
        return self._lifecycle.buffer.dropped

    def vitals(self) -> Vitals:
        """How the worker is now: for probes and metrics. From any thread, and cheap."""
        return self._lifecycle.vitals()

    @property
    def cut_short(self) -> int:
        """How many handlers still ran when the drain time of a shutdown was over.

        They were cancelled: those that gave way had their jobs put back, with no attempt spent,
        and those that could not be interrupted were abandoned, each with an error.
        """
        return self._lifecycle.cut_short

    async def release_abandoned(self) -> int:
        """Put back the jobs of handlers that `shutdown` had to abandon; how many those were.

        The attempt of one that is past its time limit has timed out, and is retried or not as ever.

        Only for a program that ends its process at once afterwards (`os._exit`), and so these
        handlers with it: until then they run, while others may start the same jobs. Takes two
        seconds at most; a job that the store does not take back in that time is left to its lease,
        and reported.
        """
        return await self._lifecycle.release_abandoned()

    async def next_error(self) -> QueueError | None:
        """Wait for the next error; None once the worker has stopped and none is left."""
        return await self._lifecycle.buffer.next()

    def try_next_error(self) -> QueueError | None:
        """The next error if there is one; never waits."""
        return self._lifecycle.buffer.take()

    async def errors(self) -> AsyncIterator[QueueError]:
        """All errors, until the worker has stopped."""
        while (error := await self.next_error()) is not None:
            yield error

    def stop_claiming(self) -> None:
        """Take no job any more, and go on with everything else until the worker is shut down.

        Running handlers finish in their own time; leases are reclaimed and schedules fired.
        """
        self._lifecycle.stop_claiming()

    async def wait(self) -> None:
        """Wait until the worker has stopped, whoever stops it."""
        await self._lifecycle.stopped.wait()

    async def shutdown(self, drain: float | None = None) -> QueueError | None:
        """Stop claiming, let handlers finish for `drain` seconds, cancel and put back the rest.

        None means the worker's `drain_timeout`, 0 cancels at once. Returns within `drain` + 1 s;
        what is still in flight then is reported and left to its lease. Takes the first unread error
        out of the buffer and returns it, else None. Legal twice: the shorter drain counts.
        """
        if drain is None:
            drain = self._lifecycle.settings.drain_timeout
        await self._lifecycle.shutdown(max(0.0, drain))
        return self.try_next_error()

    def abort(self) -> None:
        """Stop at once without waiting; jobs in flight come back when their leases run out."""
        self._lifecycle.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._lifecycle.shutdown(self._lifecycle.settings.drain_timeout)

    def __del__(self) -> None:
        if self._lifecycle.running and not self._loop.is_closed():
            warnings.warn(
                f"{self!r} was dropped while its worker ran; the worker is aborted",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )
            # Collected from whatever thread; the loop may have been closed since the look.
            try:
                self._loop.call_soon_threadsafe(self._lifecycle.abort)
            except RuntimeError:
                return

    def __repr__(self) -> str:
        state = "running" if self._lifecycle.running else "stopped"
        return f"<WorkerHandle {self.worker_id} {state}>"
