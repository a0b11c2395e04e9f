"""The signals that end a program, counted while it supervises; afterwards all is as it was."""

import signal
from collections.abc import Callable
from multiprocessing.connection import Pipe
from types import FrameType, TracebackType
from typing import Any, Self

from tenure._processes.terms import End

__all__ = ["Signals"]

_ENDING = (signal.SIGTERM, signal.SIGINT)

_Before = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Signals:
    """Counts SIGTERM and SIGINT. Used in the main thread."""

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[signal.Signals, _Before] = {}
        self._reader, self._writer = Pipe(duplex=False)

    @property
    def noticed(self) -> End:
        """What becomes readable with each signal."""
        return self._reader

    def clear(self) -> None:
        """Make it unreadable until the next one."""
        while self._reader.poll():
            self._reader.recv_bytes()

    def __enter__(self) -> Self:
        for number in _ENDING:
            before = signal.getsignal(number)
            # Who ignored it meant it so, as a shell does for what it runs in the background. What
            # was not set by Python cannot be set back by it.
            if before is not signal.SIG_IGN and before is not None:
                self._before[number] = before
                signal.signal(number, self._count)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._reader.close()
        self._writer.close()

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._writer.send_bytes(b".")
