"""A caller's own connections to a SQLite file, one kind for each library that is taken."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import sqlalchemy
import sqlalchemy.orm

__all__ = ["Caller", "sqlite_callers"]


class Caller(Protocol):
    """A program with a table of its own beside the jobs: `connection` is what it passes on."""

    connection: Any

    async def write(self, text: str) -> None:
        """Add a row to its table."""
        ...

    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...


class _Sqlite3:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def write(self, text: str) -> None:
        self.connection.execute("INSERT INTO notes VALUES (?)", (text,))

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()


class _SqlAlchemy(_Sqlite3):
    async def write(self, text: str) -> None:
        self.connection.execute(sqlalchemy.text("INSERT INTO notes VALUES (:t)"), {"t": text})


Open = Any  # an asynccontextmanager that takes the path of the file


@asynccontextmanager
async def _sqlite3(path: str) -> AsyncGenerator[Caller]:
    import sqlite3

    connection = sqlite3.connect(path)
    connection.row_factory = lambda cursor, row: {"a row of its own kind": row}
    try:
        yield _Sqlite3(connection)
    finally:
        connection.close()


@asynccontextmanager
async def _begun(path: str) -> AsyncGenerator[Caller]:
    """In autocommit mode, with a transaction that the program began itself."""
    import sqlite3

    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")

    class Begun(_Sqlite3):
        async def commit(self) -> None:
            connection.execute("COMMIT")
            connection.execute("BEGIN")

        async def rollback(self) -> None:
            connection.execute("ROLLBACK")
            connection.execute("BEGIN")

    try:
        yield Begun(connection)
    finally:
        connection.close()


@asynccontextmanager
async def _connection(path: str) -> AsyncGenerator[Caller]:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        yield _SqlAlchemy(connection)


@asynccontextmanager
async def _session(path: str) -> AsyncGenerator[Caller]:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", poolclass=sqlalchemy.NullPool)
    with sqlalchemy.orm.Session(engine) as session:
        yield _SqlAlchemy(session)


def sqlite_callers() -> dict[str, Any]:
    """By name: what opens one on the path of a file."""
    opens: dict[str, Any] = {
        "sqlite3": _sqlite3,
        "sqlite3 begun": _begun,
        "SQLAlchemy Connection": _connection,
        "SQLAlchemy Session": _session,
    }
    return opens


Opened = AbstractAsyncContextManager[Caller]
