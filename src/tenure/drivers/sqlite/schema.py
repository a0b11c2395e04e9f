"""Makes the tables, or brings them up to date, under the write lock of the file.

Never touches a table that is not ours, and never a schema that is newer than this code. One that is
a little older is worked with as it is, where it is not to be upgraded.
"""

import logging
import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

from tenure.drivers.sqlite.statements import OLDEST, migrations, statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.errors import SchemaMismatch

__all__ = ["check", "prepare"]

R = TypeVar("R")

_logger = logging.getLogger("tenure.sqlite")

_PRESENT = statement("schema_present")
_VERSION = statement("schema_version")


class Persist(Protocol):
    """`Patience.persist`."""

    def __call__(self, attempt: Callable[[], R], /) -> R: ...


def prepare(connection: sqlite3.Connection, persist: Persist, *, upgrade: bool) -> None:
    """Bring the schema to the version of this code. Raises `SchemaMismatch`.

    A file without our tables gets them in any case; `upgrade` allows to change existing ones, and
    without it those since `OLDEST` stay as they are.
    """
    steps = migrations()
    if persist(lambda: _version(connection)) != len(steps):
        persist(lambda: _upgrade(connection, steps, upgrade=upgrade))


def _upgrade(connection: sqlite3.Connection, steps: list[str], *, upgrade: bool) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again under the lock: another process may have done it meanwhile.
        found = _version(connection)
        _judge(found, len(steps), upgrade=upgrade)
        if found is None or (upgrade and found < len(steps)):
            _apply(connection, steps, found or 0)
        connection.execute("COMMIT")
        if found is not None and found < len(steps) and not upgrade:
            _logger.warning(
                "the store has schema version %d, older than this tenure's, and works; run "
                "`tenure schema migrate` when all programs have been upgraded",
                found,
            )
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply(connection: sqlite3.Connection, steps: list[str], found: int) -> None:
    for script in steps[found:]:
        for command in _commands(script):
            connection.execute(command)
    connection.execute("DELETE FROM tenure_schema")
    connection.execute("INSERT INTO tenure_schema (version) VALUES (?)", (len(steps),))


def _version(connection: sqlite3.Connection) -> int | None:
    """The version of our tables in the file; None where there are none."""
    (present,) = connection.execute(_PRESENT).fetchone()
    if not present:
        return None
    row = connection.execute(_VERSION).fetchone()
    return int(row[0]) if row else 0


def check() -> Operation[None]:
    """See `Driver.check`."""
    expected = len(migrations())

    def run(transaction: Transaction) -> None:
        rows = transaction.rows(_VERSION)
        _judge(rows[0][0] if rows else 0, expected, upgrade=False)

    return run


def _judge(found: int | None, expected: int, *, upgrade: bool) -> None:
    """Raises `SchemaMismatch` for a version that is newer, or is too old and not to be upgraded."""
    if found is None:
        return
    if found > expected:
        raise SchemaMismatch(
            found=found, expected=expected, remedy="upgrade tenure in this environment"
        )
    if found < OLDEST and not upgrade:
        raise SchemaMismatch(
            found=found,
            expected=expected,
            remedy="run `await tenure.migrate(url)`, or open it once with migrate=True",
        )


def _commands(script: str) -> list[str]:
    """Split a script; `executescript` will not do, it commits first and so gives up the lock."""
    commands: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        if line.lstrip().startswith("--"):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            commands.append(pending)
            pending = ""
    return commands
