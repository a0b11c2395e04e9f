"""Linux's notice that a file was written to, through the C library.

A descriptor that the caller owns, or None where there is no such thing (another system, no more
watches allowed, the file is missing): the caller then polls.
"""

import ctypes
import os
import struct
from collections.abc import Callable

__all__ = ["ENDED", "drain", "watch"]

_IN_MODIFY = 0x2
_IN_NONBLOCK = 0o4000
_IN_CLOEXEC = 0o2000000
_NOTICE = struct.Struct("iIII")  # watch, kind, cookie, length of the name
ENDED = 0x8000  # the kind of notice that is the last: the file is gone


def watch(path: str) -> int | None:
    """Watch a file for writes; readable once there was one. Close the descriptor when done."""
    library = ctypes.CDLL(None, use_errno=True)
    start: Callable[[int], int] | None = getattr(library, "inotify_init1", None)
    add: Callable[[int, bytes, int], int] | None = getattr(library, "inotify_add_watch", None)
    if start is None or add is None:
        return None
    descriptor = start(_IN_NONBLOCK | _IN_CLOEXEC)
    if descriptor < 0:
        return None
    if add(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(descriptor)
        return None
    return descriptor


def drain(descriptor: int) -> int:
    """Take all notices; the kinds of all of them, 0 for none."""
    seen = 0
    while True:
        try:
            notices = os.read(descriptor, 65536)
        except BlockingIOError:
            return seen
        # A watched file's notice has no name behind it, so all are of one size.
        for _, kind, _, _ in _NOTICE.iter_unpack(notices):
            seen |= kind
