"""What a fork must not do to a store: stop in the middle of a call, or close what it inherited.

SQLite holds process-wide locks during its calls, and a child forked in the middle of one would
wait for ever for a thread that it does not have. It also notes in the process which locks of a file
are held, and a child forked within a transaction would find that file locked for ever. So each
thread of ours passes a `Gate` around its calls and around whole transactions, and a fork waits
until all are out. What a child inherits of SQLite is never closed there, finalizers included: a
close would write to a file in the middle of its parent's transaction.

It is the other way round with descriptors that hold a lock for as long as this process lives: the
lock goes with the last copy, so a child closes its own at once.
"""

import ctypes
import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from weakref import WeakSet

__all__ = ["Gate", "OwnFile", "pin", "prepare_for_forks", "unpin"]


class Gate:
    """Passed by one thread around its calls of SQLite; a fork holds it shut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _forks().know(self)

    @contextmanager
    def passed(self) -> Generator[None]:
        with self._lock:
            yield

    def enter(self) -> None:
        """Go behind the gate for more than one call, until `leave`."""
        self._lock.acquire()

    def leave(self) -> None:
        self._lock.release()

    def shut(self) -> None:
        self._lock.acquire()

    def open(self) -> None:
        self._lock.release()


class _Forks:
    """All gates of the process, and what a fork does with them."""

    def __init__(self) -> None:
        self._gates: WeakSet[Gate] = WeakSet()
        self._shut: list[Gate] = []
        self._own: set[int] = set()  # descriptors
        self._forking = False
        # Reentrant: the collector may close a descriptor in any thread at any point.
        self._one_at_a_time = threading.RLock()
        os.register_at_fork(
            before=self._before, after_in_parent=self._after, after_in_child=self._after_in_child
        )

    def know(self, gate: Gate) -> None:
        with self._one_at_a_time:
            self._gates.add(gate)

    def open(self, path: str, flags: int, mode: int) -> int:
        with self._one_at_a_time:
            descriptor = os.open(path, flags, mode)
            self._own.add(descriptor)
        return descriptor

    def close(self, descriptor: int) -> None:
        with self._one_at_a_time:
            self._own.discard(descriptor)
            os.close(descriptor)

    def _after_in_child(self) -> None:
        for descriptor in self._own:
            os.close(descriptor)
        self._own.clear()
        self._after()

    def _before(self) -> None:
        self._one_at_a_time.acquire()
        self._forking = True
        for gate in self._gates:
            gate.shut()
            self._shut.append(gate)

    def _after(self) -> None:
        if not self._forking:
            return  # forked by C code that called only the hook for afterwards
        while self._shut:
            self._shut.pop().open()
        self._forking = False
        self._one_at_a_time.release()


@cache
def _forks() -> _Forks:
    """The one process-wide thing in this driver, since a fork is.

    Its hooks cannot be taken back, so they are registered once, at the first store that is made.
    It holds gates weakly and knows nothing of any store.
    """
    return _Forks()


def prepare_for_forks() -> None:
    """Let every fork from now on wait at the gates, also those that are made while it begins.

    For whoever makes a store, before a thread opens it: a fork calls only the hooks that were there
    when it began, and would else find the first transaction of the process begun in between.
    """
    _forks()


def pin(connection: sqlite3.Connection) -> None:
    """Keep the connection from ever being deallocated, and so closed, by a child.

    One reference is leaked on purpose; `unpin` gives it back when the connection was closed by
    the process that opened it.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def unpin(connection: sqlite3.Connection) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(connection))


class OwnFile:
    """An open file of this process alone: no forked child, and no program that is started, has it.

    Closed only by `close`, which does nothing in a child.
    """

    def __init__(self, path: str, flags: int, mode: int = 0o600) -> None:
        """As `os.open`."""
        self._process = os.getpid()
        self.descriptor: int = _forks().open(path, flags, mode)

    @property
    def inherited(self) -> bool:
        """Whether a parent process opened it."""
        return self._process != os.getpid()

    def close(self) -> None:
        """Not legal twice."""
        if not self.inherited:
            _forks().close(self.descriptor)
