"""What handlers did, counted outside of every queue: a file that the processes of a turn share.

Each thread of each process writes to a slot of its own, so counting takes no lock and costs less
than a microsecond. Must never import anything but the standard library: it runs beside each peer.
"""

import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ledger", "Standing"]

# Jobs that ended, when the first one started and the last one ended (monotonic ns), transactions.
_SLOT = struct.Struct("<4Q")
_SLOTS = 1 << 16
_DELAY = struct.Struct("<q")
_FIELDS = 4


@dataclass(frozen=True, kw_only=True)
class Standing:
    """All slots together. Times are nanoseconds of the monotonic clock; 0 before the first job."""

    jobs: int
    first: int
    last: int
    transactions: int


class _Slot(threading.local):
    """The numbers of this thread, as they were last written."""

    offset: int | None = None
    jobs: int = 0
    first: int = 0
    last: int = 0
    transactions: int = 0


class Ledger:
    """Written by handlers, read by the suite. Made by whoever comes first."""

    def __init__(self, path: str) -> None:
        self._taken = path + ".taken"
        self._delays = path + ".delays"
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            os.ftruncate(file, _SLOT.size * _SLOTS)
            self._map = mmap.mmap(file, _SLOT.size * _SLOTS)
        finally:
            os.close(file)
        self._append = os.open(self._delays, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._slot = _Slot()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._slot = _Slot()  # the slot of before is still the parent's

    # --- in a worker ----------------------------------------------------------------------------

    def began(self) -> None:
        """A handler has started: only the first of each thread is remembered."""
        if not self._slot.first:
            self._slot.first = time.monotonic_ns()

    def ended(self) -> None:
        """A handler has done its work."""
        slot = self._slot
        slot.jobs += 1
        slot.last = time.monotonic_ns()
        self._write(slot)

    def delayed(self, sent: int) -> None:
        """A job that was dispatched at `sent` (monotonic ns) starts now."""
        os.write(self._append, _DELAY.pack(time.monotonic_ns() - sent))

    def stated(self) -> None:
        """A transaction was begun."""
        slot = self._slot
        slot.transactions += 1
        self._write(slot)

    def _write(self, slot: _Slot) -> None:
        if slot.offset is None:
            slot.offset = self._take()
        _SLOT.pack_into(self._map, slot.offset, slot.jobs, slot.first, slot.last, slot.transactions)

    def _take(self) -> int:
        """The next free slot of all processes: where an appended byte lands."""
        file = os.open(self._taken, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, b".")
            number = os.lseek(file, 0, os.SEEK_CUR) - 1
        finally:
            os.close(file)
        if number >= _SLOTS:
            raise RuntimeError("more threads and processes than the ledger has slots")
        return _SLOT.size * number

    # --- in the suite ---------------------------------------------------------------------------

    def standing(self) -> Standing:
        """The sums of all slots; each is read while it may be written, so for one job late."""
        taken = Path(self._taken)
        used = taken.stat().st_size if taken.exists() else 0
        values = struct.unpack_from(f"<{_FIELDS * used}Q", self._map)
        firsts = [first for first in values[1::_FIELDS] if first]
        return Standing(
            jobs=sum(values[0::_FIELDS]),
            first=min(firsts, default=0),
            last=max(values[2::_FIELDS], default=0),
            transactions=sum(values[3::_FIELDS]),
        )

    def delays_count(self) -> int:
        return os.stat(self._delays).st_size // _DELAY.size

    def delays(self) -> list[float]:
        """Milliseconds from dispatch to the start of the handler, in the order of the starts."""
        data = Path(self._delays).read_bytes()
        return [delay / 1e6 for (delay,) in _DELAY.iter_unpack(data)]

    def close(self) -> None:
        self._map.close()
        os.close(self._append)
