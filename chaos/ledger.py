"""What really happened, written down outside the queue: one file for each process.

Each line is one write to the file, so that a process that is killed loses none that it has made,
and costs a few microseconds, so that it slows nobody down.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

__all__ = ["Entry", "Ledger"]


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line. `at` is the monotonic clock, the same in all processes of a machine."""

    what: str
    at: float
    job_id: str = ""
    attempt: int = 0
    text: str = ""
    serial: int = 0  # of the hold under which it happened
    process: str = ""


class Ledger:
    """Written by one process, read by any."""

    def __init__(self, path: Path | str, process: str) -> None:
        self.path = Path(path)
        self.process = process
        self._encoder = msgspec.json.Encoder()
        self._file: int | None = None

    def note(
        self,
        what: str,
        job_id: str = "",
        attempt: int = 0,
        text: str = "",
        *,
        serial: int = 0,
        at: float | None = None,
    ) -> None:
        """Write a line, by default as of now."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        instant = time.monotonic() if at is None else at
        entry = Entry(what, instant, job_id, attempt, text, serial, self.process)
        os.write(self._file, self._encoder.encode(entry) + b"\n")

    def read(self) -> Sequence[Entry]:
        """Every whole line, in order; the last may still be on its way."""
        if not self.path.exists():
            return []
        content = self.path.read_bytes()
        lines = content[: content.rfind(b"\n") + 1].splitlines()
        decoder = msgspec.json.Decoder(Entry)
        return [decoder.decode(line) for line in lines]
