"""The schema of a file from outside: which version it has, and the SQL that makes it.

Changes nothing, and makes no file.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from tenure.drivers.sqlite.faults import translated
from tenure.drivers.sqlite.statements import OLDEST, migrations, statement

__all__ = ["OLDEST", "expected", "found", "script"]


def expected() -> int:
    """The version that this code works with."""
    return len(migrations())


def found(path: str) -> int | None:
    """The version in a file; None where there is no file, or nothing of ours in it."""
    if path == ":memory:" or not Path(path).exists():
        return None
    try:
        with closing(
            sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)
        ) as file:
            if not file.execute(statement("schema_present")).fetchone()[0]:
                return None
            row = file.execute(statement("schema_version")).fetchone()
            return int(row[0]) if row else 0
    except sqlite3.Error as error:
        raise translated(error, path) from error


def script() -> str:
    """All commands that make the schema in an empty file, as one transaction."""
    steps = migrations()
    version = f"INSERT INTO tenure_schema (version) VALUES ({len(steps)});"
    return "\n".join(
        ["PRAGMA journal_mode = WAL;", "BEGIN IMMEDIATE;", *steps, version, "COMMIT;", ""]
    )
