"""Makes the tables, or brings them up to date, under the write lock of the file.

Never touches a table that is not ours, and never a schema that is newer than this code.
"""

import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

from tenure.drivers.sqlite.statements import migrations, statement
from tenure.errors import SchemaMismatch

__all__ = ["prepare"]

R = TypeVar("R")

_PRESENT = statement("schema_present")
_VERSION = statement("schema_version")


class Persist(Protocol):
    """`Patience.persist`."""

    def __call__(self, attempt: Callable[[], R], /) -> R: ...


def prepare(connection: sqlite3.Connection, persist: Persist, *, upgrade: bool) -> None:
    """Bring the schema to the version of this code. Raises `SchemaMismatch`.

    A file without our tables gets them in any case; `upgrade` allows to change existing ones.
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
        for script in steps[found or 0 :]:
            for command in _commands(script):
                connection.execute(command)
        if found != len(steps):
            connection.execute("DELETE FROM tenure_schema")
            connection.execute("INSERT INTO tenure_schema (version) VALUES (?)", (len(steps),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int | None:
    """The version of our tables in the file; None where there are none."""
    (present,) = connection.execute(_PRESENT).fetchone()
    if not present:
        return None
    row = connection.execute(_VERSION).fetchone()
    return int(row[0]) if row else 0


def _judge(found: int | None, expected: int, *, upgrade: bool) -> None:
    if found is None:
        return
    if found > expected:
        raise SchemaMismatch(
            found=found, expected=expected, remedy="upgrade tenure in this environment"
        )
    if found < expected and not upgrade:
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
