"""Operations in the transaction of a caller's own `sqlite3` connection to the same file.

The caller's connection is blocking, and so is this: it runs on the caller's thread, under a
savepoint, and leaves the transaction as usable as it found it. It never commits. What the caller
commits is seen by everybody's hints as any other commit is, through the file.
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

from tenure.clock import Clock
from tenure.drivers.caller import refused, unwrapped
from tenure.drivers.sqlite.faults import Fault, fault_of, translated
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.errors import StoreUnavailable

__all__ = ["run_within"]

R = TypeVar("R")

_LOCK = statement("write_lock")


async def run_within(connection: object, operation: Operation[R], path: str, clock: Clock) -> R:
    """Run the operation in the caller's transaction. Never suspends for a blocking connection."""
    raw = await unwrapped(connection)
    if not isinstance(raw, sqlite3.Connection):
        raise refused(raw, "must be a connection of sqlite3, or of SQLAlchemy over it")
    try:
        with _as_we_read(raw):
            _check_file(raw, path)
            with _savepoint(raw):
                transaction = Transaction(raw, clock)
                answer = operation(transaction)
                transaction.finish()
                return answer
    except sqlite3.ProgrammingError as error:  # closed, or made on another thread
        raise refused(raw, f"must be usable here ({error})") from error
    except sqlite3.Error as error:
        if fault_of(error) is Fault.BUSY:
            raise StoreUnavailable(
                f"the transaction given as within= cannot write to {path!r} ({error}): another "
                "connection has the lock, or wrote since this one first read; begin with BEGIN "
                "IMMEDIATE, and try the transaction again"
            ) from error
        raise translated(error, path) from error


def _check_file(connection: sqlite3.Connection, path: str) -> None:
    if path == ":memory:":
        raise refused(connection, "is for files; no other connection leads to a store in memory")
    for _, name, file in connection.execute("PRAGMA database_list"):
        if name == "main":
            if not file or not os.path.samefile(file, path):
                raise refused(connection, f"must be to the queue's own file, {path}")
            return


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Generator[None]:
    """A part of the caller's transaction that can be undone alone.

    Outside of a transaction one is begun where the connection would do so for its next change, so
    that the caller's commit ends it. It has the lock for writing before anything is read: a
    transaction that has read can only fail where another one writes before it does.
    """
    begun = not connection.in_transaction
    if begun:
        # Since Python 3.12 there is a second way to say that every statement commits by itself.
        if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
            raise refused(connection, "must be in a transaction: execute BEGIN first")
        connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("SAVEPOINT tenure")
        try:
            connection.execute(_LOCK)
            yield
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK TO tenure")
                connection.execute("RELEASE tenure")
            raise
        connection.execute("RELEASE tenure")
    except BaseException:
        if begun and connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _as_we_read(connection: sqlite3.Connection) -> Generator[None]:
    """Plain rows and text for a moment, whatever the caller has set for its own."""
    rows, text = connection.row_factory, connection.text_factory
    connection.row_factory, connection.text_factory = None, str
    try:
        yield
    finally:
        connection.row_factory, connection.text_factory = rows, text
