"""A caller's own connections to PostgreSQL, one kind for each library that is taken."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import psycopg
import sqlalchemy
import sqlalchemy.ext.asyncio as asynchronous
import sqlalchemy.orm
from psycopg.rows import dict_row

__all__ = ["POSTGRES_CALLERS", "PostgresCaller"]

_INSERT = "INSERT INTO {table} VALUES ('{text}')"


class PostgresCaller:
    """A program with a table of its own: `connection` is what it passes on as `within=`."""

    def __init__(self, connection: Any, table: str) -> None:
        self.connection = connection
        self.table = table

    async def execute(self, sql: str) -> None:
        await self.connection.execute(sql)

    async def write(self, text: str) -> None:
        await self.execute(_INSERT.format(table=self.table, text=text))

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()


class _Blocking(PostgresCaller):
    async def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()


class _Alchemy(PostgresCaller):
    async def execute(self, sql: str) -> None:
        await self.connection.execute(sqlalchemy.text(sql))


class _BlockingAlchemy(_Blocking):
    async def execute(self, sql: str) -> None:
        self.connection.execute(sqlalchemy.text(sql))


class _Asyncpg(PostgresCaller):
    """Begins by itself, as programs with asyncpg do."""

    async def commit(self) -> None:
        await self.connection.execute("COMMIT; BEGIN")

    async def rollback(self) -> None:
        await self.connection.execute("ROLLBACK; BEGIN")


@asynccontextmanager
async def _psycopg(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    with psycopg.connect(url) as connection:
        cast("Any", connection).row_factory = dict_row  # rows of its own kind
        yield _Blocking(connection, table)


@asynccontextmanager
async def _async_psycopg(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield PostgresCaller(connection, table)


@asynccontextmanager
async def _asyncpg(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    connection = await asyncpg.connect(url)
    await connection.execute("BEGIN")
    try:
        yield _Asyncpg(connection, table)
    finally:
        await connection.close()


@asynccontextmanager
async def _asyncpg_pool(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as proxy:
        await proxy.execute("BEGIN")
        yield _Asyncpg(proxy, table)


def _alchemy(url: str, library: str) -> str:
    return url.replace("postgresql://", f"postgresql+{library}://")


@asynccontextmanager
async def _connection(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    engine = sqlalchemy.create_engine(_alchemy(url, "psycopg"), poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        yield _BlockingAlchemy(connection, table)


@asynccontextmanager
async def _session(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    engine = sqlalchemy.create_engine(_alchemy(url, "psycopg"), poolclass=sqlalchemy.NullPool)
    with sqlalchemy.orm.Session(engine) as session:
        yield _BlockingAlchemy(session, table)


def _async_engine(url: str, library: str) -> asynchronous.AsyncEngine:
    return asynchronous.create_async_engine(_alchemy(url, library), poolclass=sqlalchemy.NullPool)


@asynccontextmanager
async def _async_connection(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    async with _async_engine(url, "asyncpg").connect() as connection:
        yield _Alchemy(connection, table)


@asynccontextmanager
async def _async_session(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    async with asynchronous.AsyncSession(_async_engine(url, "asyncpg")) as session:
        yield _Alchemy(session, table)


@asynccontextmanager
async def _async_session_psycopg(url: str, table: str) -> AsyncGenerator[PostgresCaller]:
    async with asynchronous.AsyncSession(_async_engine(url, "psycopg")) as session:
        yield _Alchemy(session, table)


POSTGRES_CALLERS: dict[str, Any] = {
    "psycopg": _psycopg,
    "psycopg async": _async_psycopg,
    "asyncpg": _asyncpg,
    "asyncpg pool": _asyncpg_pool,
    "SQLAlchemy Connection": _connection,
    "SQLAlchemy Session": _session,
    "SQLAlchemy AsyncConnection, asyncpg": _async_connection,
    "SQLAlchemy AsyncSession, asyncpg": _async_session,
    "SQLAlchemy AsyncSession, psycopg": _async_session_psycopg,
}
