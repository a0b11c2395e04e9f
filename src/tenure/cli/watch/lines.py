"""One process as its program sees it: asked how it is, and what it said last.

Used on the event loop of the program's own thread. Whatever the process does, a question ends.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from tenure.cli.watch.terms import HEAD, Asked, Family, Told, length_of, read_told, sent
from tenure.clock import Clock

__all__ = ["Line"]

_SILENT = 5.0  # seconds without an answer, though asked, after which a process does not answer
_LONGEST = 64 * 1024 * 1024  # bytes of one answer
_END = 1.0  # for what a process that has ended may have left in its line


class Line:
    """The line to one process. `ended` is called once, when there will be no more from it."""

    def __init__(
        self,
        place: int,
        pid: int,
        line: socket.socket,
        clock: Clock,
        ended: Callable[["Line"], None],
    ) -> None:
        self.place = place
        self.pid = pid
        self.ready: bool = False  # its worker has been started
        self.families: Sequence[Family] | None = None
        self._clock = clock
        self._ended = ended
        self._told: Told | None = None
        self._number = 0
        self._unanswered: float | None = None  # since when
        self._waiting: dict[int, asyncio.Future[Told]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading = asyncio.get_running_loop().create_task(self._read(line))

    @property
    def name(self) -> str:
        return f"process {self.place} (pid {self.pid})"

    async def ask(self, patience: float, *, metrics: bool = False) -> Told | None:
        """What it says within so many seconds, else what it said last."""
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        if self._unanswered is None:
            self._unanswered = self._clock.monotonic()
        try:
            if self._writer is not None and not self._writer.is_closing():
                self._writer.write(sent(Asked(number, metrics)))
            await self._clock.wait(answer, patience)
        finally:
            del self._waiting[number]
        return self._told

    @property
    def silent(self) -> float:
        """For how many seconds it has not answered, where that is too long; else 0."""
        if self._unanswered is None:
            return 0.0
        seconds = self._clock.monotonic() - self._unanswered
        return seconds if seconds > _SILENT else 0.0

    async def close(self) -> None:
        """Its process has ended: read what is left, and give the line up."""
        if not await self._clock.wait(self._reading, _END):
            self._reading.cancel()  # something that it has started holds the other end
            await asyncio.wait([self._reading])

    async def _read(self, line: socket.socket) -> None:
        try:
            reader, self._writer = await asyncio.open_connection(sock=line)
            with suppress(OSError, asyncio.IncompleteReadError, msgspec.MsgspecError):
                while (length := length_of(await reader.readexactly(HEAD))) <= _LONGEST:
                    self._hear(read_told(await reader.readexactly(length)))
        finally:
            if self._writer is not None:
                self._writer.transport.abort()
            self._ended(self)

    def _hear(self, told: Told) -> None:
        if told.families is not None:
            self.families = told.families
        if told.number == 0:
            return
        self._told, self._unanswered = told, None
        answer = self._waiting.get(told.number)
        if answer is not None and not answer.done():
            answer.set_result(told)
