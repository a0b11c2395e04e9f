"""The progress and the log of running attempts, on their way into the store.

A handler may say more than a store should hear: what is new waits while a write is in flight or was
just made, and only the newest is written. The last of it goes before the outcome, and what could
not be written is dropped with the attempt. Must never make a handler wait, nor fail its job.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine

from tenure._runtime.failures import describe
from tenure._runtime.loop import Backoff
from tenure._runtime.report import Reporter
from tenure._runtime.text import checked_fraction, checked_text
from tenure.clock import Clock
from tenure.codec import opened, sealed
from tenure.driver import Capability, Driver
from tenure.errors import (
    QueueError,
    SerializationError,
    StateTransitionError,
    StoreUnavailable,
    Unsupported,
    WorkerTaskError,
)
from tenure.events import JobFenced
from tenure.payload_codec import PayloadCodec
from tenure.progress import LogLine, Progress, progress_bytes, progress_from
from tenure.types import Claim, Hold, Recorded

__all__ = ["JobProgress", "ProgressWriter"]

_INTERVAL = 0.1  # seconds between two writes of one attempt
_BACKOFF = (0.5, 10.0)
_LINES = 100


class JobProgress:
    """What one attempt has said of itself. `set` and `log` may be called from any thread."""

    __slots__ = (
        "_after",
        "_awake",
        "_closed",
        "_fraction",
        "_lines",
        "_new",
        "_note",
        "_writer",
        "claim",
        "completing",
        "ended",
    )

    def __init__(self, claim: Claim, writer: "ProgressWriter") -> None:
        self.claim: Claim = claim
        self.completing: bool = False  # by `complete_within`, which may settle the hold at any time
        self.ended: asyncio.Future[None] | None = None  # there while it is being written
        self._writer = writer
        self._fraction: float | None = None
        self._note: str | None = None
        self._lines: deque[LogLine] | None = None  # None until the first word
        self._new = False
        self._awake = False  # the writer has been told, and will come for what is new
        self._closed = False
        self._after: Callable[[], None] | None = None

    # --- from the handler -----------------------------------------------------------------------

    def set(self, fraction: float, note: str | None) -> None:
        """See `RunningJob.set_progress`."""
        self._writer.check_supported()
        number = checked_fraction(fraction)
        text = None if note is None else checked_text("note", note)
        with self._writer.lock:
            if not self._closed:
                self._begin()
                self._fraction, self._note = number, text
                self._changed()

    def log(self, text: str) -> None:
        """See `RunningJob.log`."""
        self._writer.check_supported()
        line = LogLine(at=self._writer.clock.now(), text=checked_text("text", text))
        with self._writer.lock:
            if not self._closed:
                self._begin().append(line)
                self._changed()

    def _begin(self) -> deque[LogLine]:
        """Go on from what the attempts before have stored."""
        if self._lines is None:
            before = _stored(self.claim, self._writer.codec)
            self._fraction, self._note = before.fraction, before.note
            self._lines = deque(before.log, maxlen=_LINES)
        return self._lines

    def _changed(self) -> None:
        self._new = True
        if not self._awake:
            self._awake = True
            self._writer.wake(self)

    # --- on the event loop ----------------------------------------------------------------------

    @property
    def awaits_writer(self) -> bool:
        """Whether the writer was told of something new, and has not left since."""
        return self._awake

    def take(self) -> bytes | None:
        """What is new, to be written; None: the next word wakes the writer again."""
        with self._writer.lock:
            if not self._new:
                self._awake = False
                return None
            self._new = False
            said = Progress(fraction=self._fraction, note=self._note, log=tuple(self._lines or ()))
        codec = self._writer.codec
        return progress_bytes(said) if codec is None else sealed(progress_bytes(said), codec)

    def put_back(self) -> None:
        """What was taken has not been written."""
        with self._writer.lock:
            self._new = not self._closed

    def drop(self) -> None:
        """Write nothing more of this attempt, whatever it says."""
        with self._writer.lock:
            self._closed = True
            self._new = False
        self._end()

    def finish(self, after: Callable[[], None]) -> None:
        """The handler has ended: write the last of what it said, then call `after`."""
        with self._writer.lock:
            self._closed = True
            busy = self._awake
        if busy:
            self._after = after
            self._end()
        else:
            after()

    def give_up(self) -> None:
        """What is new will not be written; the next word wakes the writer again."""
        with self._writer.lock:
            self._awake = self._new = False

    def left(self) -> None:
        """The writer has left; whoever waits for that goes on."""
        self.ended = None
        after, self._after = self._after, None
        if after is not None:
            after()

    def begin_writing(self) -> "asyncio.Future[None]":
        """The future that is done once the handler has ended, so that no pause is kept."""
        self.ended = asyncio.get_running_loop().create_future()
        if self._closed:
            self._end()
        return self.ended

    def _end(self) -> None:
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(None)


class ProgressWriter:
    """Writes what the attempts of one worker say: one task for each that has something new."""

    def __init__(
        self,
        driver: Driver,
        codec: PayloadCodec | None,
        reporter: Reporter,
        clock: Clock,
        spawn: Callable[[Coroutine[object, object, None], str], "asyncio.Task[None]"],
    ) -> None:
        self.lock: threading.Lock = (
            threading.Lock()
        )  # one for all: it is held for the time of a few assignments
        self.clock = clock
        self.codec = codec
        self.lost: Callable[[Hold], None] | None = None
        self._driver = driver
        self._reporter = reporter
        self._spawn = spawn
        self._loop = asyncio.get_running_loop()
        self._supported = Capability.PROGRESS in driver.capabilities
        self._closed = False

    def begin(self, claim: Claim) -> JobProgress:
        """For an attempt that starts."""
        return JobProgress(claim, self)

    def check_supported(self) -> None:
        if not self._supported:
            raise Unsupported("progress")

    def wake(self, progress: JobProgress) -> None:
        """There is something new. From any thread."""
        try:
            self._loop.call_soon_threadsafe(self._start, progress)
        except RuntimeError:
            return  # the loop is closed: the worker has ended, its handler goes on in a thread

    def close(self) -> None:
        """The worker ends: nothing is written any more."""
        self._closed = True

    def _start(self, progress: JobProgress) -> None:
        if self._closed:
            progress.give_up()
            progress.left()
        else:
            task = self._spawn(self._run(progress), "tenure-progress")
            task.add_done_callback(lambda task: self._never_ran(progress, task))

    def _never_ran(self, progress: JobProgress, task: "asyncio.Task[None]") -> None:
        """A task that the host cancelled before its first step never came to `_run`."""
        if task.cancelled() and progress.awaits_writer:
            progress.give_up()
            progress.left()

    async def _run(self, progress: JobProgress) -> None:
        """Write what is new until nothing is, the last of it as soon as the handler has ended."""
        backoff = Backoff(*_BACKOFF)
        all_written = False
        try:
            ended = progress.begin_writing()
            while (value := progress.take()) is not None:
                if await self._write(progress, value):
                    backoff.reset()
                    pause = _INTERVAL
                elif ended.done():
                    return  # its outcome matters more
                else:
                    pause = backoff.pause()
                await self.clock.wait(ended, pause)
            all_written = True
        finally:
            if not all_written:
                progress.give_up()
            progress.left()

    async def _write(self, progress: JobProgress, value: bytes) -> bool:
        """Whether the store has answered."""
        try:
            answer = await self._driver.progress(progress.claim.hold, value)
        except StoreUnavailable as error:
            self._reporter.report(error)
            progress.put_back()
            return False
        except QueueError as error:
            self._reporter.report(error)  # this value is refused; the next may not be
            return False
        except Exception as error:
            # A defect of the driver; the job is not to suffer from it.
            death = WorkerTaskError("progress", describe(error))
            death.__cause__ = error
            self._reporter.report(death)
            return False
        if answer is Recorded.FENCED or answer is Recorded.UNKNOWN:
            progress.drop()
            # What is committed by `complete_within` has settled the hold: nothing was lost then.
            if not progress.completing:
                self._fenced(progress.claim, answer)
        return True

    def _fenced(self, claim: Claim, answer: Recorded) -> None:
        what = (
            "the job is not there any more"
            if answer is Recorded.UNKNOWN
            else "the hold is not current: the job was reclaimed, and perhaps run again elsewhere"
        )
        self._reporter.emit(JobFenced(job=claim.job, hold=claim.hold, operation="progress"))
        self._reporter.report(
            StateTransitionError(claim.hold.job_id, "progress", f"nothing was changed: {what}")
        )
        if self.lost is not None:
            self.lost(claim.hold)


def _stored(claim: Claim, codec: PayloadCodec | None) -> Progress:
    data = claim.job.progress
    try:
        return Progress() if data is None else progress_from(opened(data, codec))
    except SerializationError:
        return Progress()  # whatever it was, this attempt has something to say
