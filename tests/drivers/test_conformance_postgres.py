"""The conformance kit on a PostgreSQL server, and through PgBouncer in transaction mode."""

import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.drivers.postgres import PostgresDriver
from tenure.testing.conformance import Check
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


def driver(url: str) -> PostgresDriver:
    """A store of its own in a schema that nobody used."""
    return PostgresDriver(url, schema=f"kit_{uuid4().hex}", clock=SystemClock())


@parametrize_checks
def test_postgres(check: Check, postgres_server: PostgresServer) -> None:
    run_check(check, opening(lambda: driver(postgres_server.url)))


@parametrize_checks
def test_postgres_through_pgbouncer(check: Check, pgbouncer: PgBouncer) -> None:
    """Two server connections for all clients, so that every call may meet another one."""
    run_check(check, opening(lambda: driver(pgbouncer.url)))
