"""Operations in the transaction of a caller's own connection, of psycopg or asyncpg.

Runs under a savepoint, so that what fails leaves the transaction usable; never commits, rolls back
or closes it. Imports neither library: it knows their connections by the modules of their classes.
With a blocking connection nothing here suspends.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from tenure.drivers.caller import library, refused, unwrapped
from tenure.drivers.postgres import faults
from tenure.drivers.postgres.rows import Row
from tenure.drivers.postgres.statements import Statements
from tenure.errors import StoreError, StoreUnavailable

__all__ = ["CallersTransaction", "within"]

_ARGUMENT = re.compile(r"\$(\d+)")
# What psycopg's TransactionStatus numbers mean.
_IDLE, _IN_ERROR, _UNKNOWN = 0, 3, 4
# The schema, or a function or table in it, is not where this connection leads.
_ELSEWHERE = frozenset({"3F000", "42883", "42P01"})


class CallersTransaction:
    """Runs statements by name, as a pool does, inside of what the caller has begun."""

    def __init__(self, link: "_Link", statements: Statements) -> None:
        self._link = link
        self._statements = statements

    async def fetch(self, statement: str, *arguments: object) -> list[Row]:
        return await self._link.fetch(self._statements.text(statement), arguments)


@asynccontextmanager
async def within(connection: object, statements: Statements) -> AsyncGenerator[CallersTransaction]:
    """A part of the caller's transaction that is undone alone where the body raises.

    Raises `InvalidConfiguration` for a connection that cannot be used. What the server refuses is
    `StoreError`; a deadlock or a serialization failure is the caller's to repeat as a whole.
    """
    raw = await unwrapped(connection)
    link = _linked(raw)
    link.check()
    try:
        await link.execute("SAVEPOINT tenure")
        try:
            yield CallersTransaction(link, statements)
        except Exception:
            await link.execute("ROLLBACK TO SAVEPOINT tenure")
            await link.execute("RELEASE SAVEPOINT tenure")
            raise
        await link.execute("RELEASE SAVEPOINT tenure")
    except Exception as error:
        if library(error, "psycopg", "asyncpg") is None:
            raise
        sqlstate = getattr(error, "sqlstate", None)
        if sqlstate == "25P02":
            raise refused(raw, "must be in a transaction that has not failed") from error
        if sqlstate in _ELSEWHERE:
            raise refused(
                raw, f"must lead to the database of this queue, where {statements.where} is"
            ) from error
        raise _translated(error, sqlstate) from error


def _translated(error: Exception, sqlstate: str | None) -> StoreError:
    if sqlstate is None:
        return faults.lost(str(error) or type(error).__name__)
    if sqlstate in faults.TRANSIENT:
        return StoreUnavailable(f"the transaction given as within= has to be repeated ({error})")
    return faults.refused(sqlstate, str(error), sent=True)


class _Link(Protocol):
    """One kind of connection."""

    def check(self) -> None:
        """Raise `InvalidConfiguration` unless it is in a transaction, or begins one by itself."""
        ...

    async def execute(self, sql: str) -> None: ...
    async def fetch(self, sql: str, arguments: Sequence[object]) -> list[Row]: ...


def _linked(raw: Any) -> _Link:
    match library(raw, "psycopg", "asyncpg"):
        case "asyncpg":
            return _Asyncpg(raw)
        case "psycopg":
            waits = any(parent.__name__ == "AsyncConnection" for parent in type(raw).__mro__)
            return _AsyncPsycopg(raw) if waits else _Psycopg(raw)
        case _:
            raise refused(
                raw, "must be a connection of psycopg (3) or asyncpg, or of SQLAlchemy over these"
            )


class _Asyncpg:
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def check(self) -> None:
        if self._raw.is_closed():
            raise refused(self._raw, "must be open")
        if not self._raw.is_in_transaction():
            raise refused(self._raw, "must be in a transaction: use `async with c.transaction():`")

    async def execute(self, sql: str) -> None:
        await self._raw.execute(sql)

    async def fetch(self, sql: str, arguments: Sequence[object]) -> list[Row]:
        return [*await self._raw.fetch(sql, *arguments)]


class _Psycopg:
    """Blocking. It begins a transaction by itself, but in autocommit mode."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def check(self) -> None:
        status = int(self._raw.info.transaction_status)
        if self._raw.closed or status == _UNKNOWN:
            raise refused(self._raw, "must be open")
        if status == _IN_ERROR:
            raise refused(self._raw, "must be in a transaction that has not failed")
        if status == _IDLE and self._raw.autocommit:
            raise refused(self._raw, "must be in a transaction: use `with c.transaction():`")

    async def execute(self, sql: str) -> None:
        self._raw.execute(sql)

    async def fetch(self, sql: str, arguments: Sequence[object]) -> list[Row]:
        with self._raw.cursor(row_factory=_plain) as cursor:
            cursor.execute(*_by_name(sql, arguments))
            return [*cursor.fetchall()]


class _AsyncPsycopg(_Psycopg):
    async def execute(self, sql: str) -> None:
        await self._raw.execute(sql)

    async def fetch(self, sql: str, arguments: Sequence[object]) -> list[Row]:
        async with self._raw.cursor(row_factory=_plain) as cursor:
            await cursor.execute(*_by_name(sql, arguments))
            return [*await cursor.fetchall()]


def _plain(cursor: object) -> type[tuple[Any, ...]]:
    """Rows as tuples, whatever the caller has set for its own."""
    return tuple


def _by_name(sql: str, arguments: Sequence[object]) -> tuple[str, dict[str, object]]:
    """A statement and its arguments as psycopg takes them."""
    named = _ARGUMENT.sub(r"%(p\1)s", sql.replace("%", "%%"))
    return named, {f"p{place}": value for place, value in enumerate(arguments, 1)}
