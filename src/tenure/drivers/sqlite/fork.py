"""What a fork must not do to a store: stop in the middle of a call, or close what it inherited.

SQLite holds process-wide locks during its calls, and a child forked in the middle of one would
wait for ever for a thread that it does not have. So each thread of ours passes a `Gate` around its
calls, and a fork waits until all are out. What a child inherits is never closed there, finalizers
included: a close would write to a file in the middle of its parent's transaction.
"""

import ctypes
import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from weakref import WeakSet

__all__ = ["Gate", "pin", "unpin"]


class Gate:
    """Passed by one thread around its calls of SQLite; a fork holds it shut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shut = False
        _gates().add(self)

    @contextmanager
    def passed(self) -> Generator[None]:
        with self._lock:
            yield

    def shut(self) -> None:
        self._shut = self._lock.acquire()

    def open(self) -> None:
        # A fork made by C code may run the hook for afterwards without the one for before.
        if self._shut:
            self._shut = False
            self._lock.release()


@cache
def _gates() -> "WeakSet[Gate]":
    """All gates of the process, held weakly.

    The one process-wide thing in this driver, because a fork is: its hooks cannot be taken back, so
    they are registered once, at the first store that is opened.
    """
    gates: WeakSet[Gate] = WeakSet()
    shut: list[Gate] = []

    def before() -> None:
        shut.extend(gates)
        for gate in shut:
            gate.shut()

    def after() -> None:
        while shut:
            shut.pop().open()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)
    return gates


def pin(connection: sqlite3.Connection) -> None:
    """Keep the connection from ever being deallocated, and so closed, by a child.

    One reference is leaked on purpose; `unpin` gives it back when the connection was closed by
    the process that opened it.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def unpin(connection: sqlite3.Connection) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(connection))
