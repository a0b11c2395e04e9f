"""Linux's notice that a file was written to, through the C library.

A descriptor that the caller owns, or None where there is no such thing (another system, no more
watches allowed, the file is missing): the caller then polls.
"""

import ctypes
import os
from collections.abc import Callable

__all__ = ["drain", "watch"]

_IN_MODIFY = 0x2
_IN_NONBLOCK = 0o4000
_IN_CLOEXEC = 0o2000000


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


def drain(descriptor: int) -> bool:
    """Take all notices; whether there was one."""
    noticed = False
    while True:
        try:
            noticed = bool(os.read(descriptor, 65536)) or noticed
        except BlockingIOError:
            return noticed
