"""Opening one connection to the file: its settings, its schema, and patience with other processes.

A connection belongs to the thread that opened it. The file is never opened by any other means:
closing a descriptor of it would drop the locks that SQLite holds on it for the whole process.
"""

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tenure.drivers.sqlite.faults import Fault, fault_of
from tenure.drivers.sqlite.fork import Gate, pin, unpin
from tenure.drivers.sqlite.schema import prepare
from tenure.errors import StoreError

__all__ = ["Patience", "Settings", "close", "connect", "is_path"]

R = TypeVar("R")

_OLDEST = (3, 37, 0)  # STRICT tables, RETURNING
_SHORTEST_WAIT = 0.0005
_LONGEST_WAIT = 0.005
_GROWTH = 0.01  # of the time already waited


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the constructor of the driver was given."""

    path: str
    synchronous: str
    busy_timeout: float
    migrate: bool

    @property
    def in_memory(self) -> bool:
        return self.path == ":memory:"


def is_path(path: str) -> bool:
    """Whether a file can have this name; the URLs that SQLite itself knows are none."""
    try:
        return bool(path) and b"\0" not in os.fsencode(path) and not path.startswith("file:")
    except UnicodeEncodeError:
        return False


class Patience:
    """Tries again while another process holds a lock, up to a deadline.

    SQLite's own busy handler starves processes (of 8, some got nothing in 1.5 s, p99 1.5 s); short
    jittered waits are fair (p99 30 ms) at the same total. The waits and the deadline are real time,
    not the driver's clock: the holder of the lock lives in another process.
    """

    def __init__(self, budget: float, gate: Gate) -> None:
        self._budget = budget
        self.gate = gate
        self._never = threading.Event()

    def persist(self, attempt: Callable[[], R]) -> R:
        """The result of `attempt`, or its last error. Runs behind the gate, waits outside it."""
        result = self.enter(attempt)
        self.gate.leave()
        return result

    def enter(self, attempt: Callable[[], R]) -> R:
        """As `persist`, but stays behind the gate after a success: the caller leaves it.

        Between the beginning of a transaction and what follows there is no moment for a fork then.
        """
        started = None
        while True:
            self.gate.enter()
            try:
                return attempt()
            except sqlite3.Error as error:
                self.gate.leave()
                if fault_of(error) is not Fault.BUSY:
                    raise
                now = time.monotonic()
                started = now if started is None else started
                waited = now - started
                if waited >= self._budget:
                    raise
            except BaseException:
                self.gate.leave()
                raise
            longest = min(_LONGEST_WAIT, _SHORTEST_WAIT + waited * _GROWTH)
            self._never.wait(random.uniform(0, longest))


def connect(settings: Settings, patience: Patience, *, reading: bool) -> sqlite3.Connection:
    """A connection that is ready for use. Raises `sqlite3.Error` or `StoreError`."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise StoreError(
            f"this Python has SQLite {sqlite3.sqlite_version}, tenure needs 3.37 or newer: use a "
            "newer Python or system library"
        )
    connection = patience.persist(
        lambda: sqlite3.connect(
            settings.path,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
    )
    pin(connection)
    try:
        _configure(connection, settings, patience)
        if reading:
            patience.persist(lambda: connection.execute("PRAGMA query_only = ON"))
        else:
            prepare(connection, patience.persist, upgrade=settings.migrate)
    except BaseException:
        close(connection, patience.gate)
        raise
    return connection


def _configure(connection: sqlite3.Connection, settings: Settings, patience: Patience) -> None:
    # Several processes that open a new file at once race for this switch.
    mode = patience.persist(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
    if mode != "wal" and not settings.in_memory:
        raise StoreError(
            f"{settings.path!r} cannot have a write-ahead log (it stays in mode {mode!r}); put it "
            "on a local disk"
        )
    patience.persist(lambda: connection.execute(f"PRAGMA synchronous = {settings.synchronous}"))
    # A burst lets the log grow; this lets it shrink again.
    patience.persist(lambda: connection.execute("PRAGMA journal_size_limit = 67108864"))


def close(connection: sqlite3.Connection, gate: Gate) -> None:
    """Close for good, in the process that opened it."""
    try:
        with gate.passed():
            connection.close()
    finally:
        unpin(connection)
