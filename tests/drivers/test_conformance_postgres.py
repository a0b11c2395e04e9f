"""The conformance kit on a PostgreSQL server, and through PgBouncer in transaction mode."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.drivers.postgres import PostgresDriver
from tenure.testing.conformance import REPEATABLE, Check, conform, repeating
from tenure.testing.conformance.adapter import parametrize_checks, run_check
from tests.drivers.witnesses import opening
from tests.servers.pgbouncer import PgBouncer, pgbouncer
from tests.servers.postgres import PostgresServer, postgres_server

__all__ = ["pgbouncer", "postgres_server"]  # fixtures


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """That there are no notifications through the pooler is said elsewhere."""
    logger = logging.getLogger("tenure.postgres")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)


@pytest.fixture(scope="session")
def emptying(postgres_server: PostgresServer) -> Iterator[Callable[[], str]]:
    """What empties the store of the kit and gives its schema.

    To make one for each check takes ten times as long, and opening one is tested elsewhere.
    """
    schema = f"kit_{uuid4().hex}"

    async def make() -> None:
        store = driver(postgres_server.url, schema)
        await store.open()
        await store.close()

    asyncio.run(make())
    with postgres_server.client() as client:
        tables = client.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename <> 'version'",
            [schema],
        ).fetchall()
        deletes = "; ".join(f"DELETE FROM {schema}.{table}" for (table,) in tables).encode()

        def empty() -> str:
            client.execute(deletes)
            return schema

        yield empty


@pytest.fixture
def schema(emptying: Callable[[], str]) -> str:
    """The schema of an empty store."""
    return emptying()


def driver(url: str, schema: str) -> PostgresDriver:
    return PostgresDriver(url, schema=schema, clock=SystemClock())


@parametrize_checks
def test_postgres(check: Check, postgres_server: PostgresServer, schema: str) -> None:
    run_check(check, opening(lambda: driver(postgres_server.url, schema)))


@parametrize_checks
def test_postgres_through_pgbouncer(check: Check, pgbouncer: PgBouncer, schema: str) -> None:
    """Two server connections for all clients, so that every call may meet another one."""
    run_check(check, opening(lambda: driver(pgbouncer.url, schema)))


@pytest.mark.slow
def test_every_call_may_be_repeated(
    postgres_server: PostgresServer, emptying: Callable[[], str]
) -> None:
    """I14: the kit with every answer lost once."""
    stores = opening(lambda: driver(postgres_server.url, emptying()))
    asyncio.run(conform(repeating(stores), REPEATABLE)).raise_for_failures()
