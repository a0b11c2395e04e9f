"""The servers of this folder; one whose tests break it is started for them alone."""

from collections.abc import Iterator

import pytest

from tests.servers.pgbouncer import pgbouncer
from tests.servers.postgres import PostgresServer, postgres_server, running

__all__ = ["own_server", "pgbouncer", "postgres_server"]


@pytest.fixture(scope="session")
def lent_server() -> Iterator[PostgresServer]:
    with running() as server:
        yield server


@pytest.fixture
def own_server(lent_server: PostgresServer) -> Iterator[PostgresServer]:
    """A server that the test may kill and set up as it likes; it runs again afterwards."""
    yield lent_server
    if not lent_server.answers:
        lent_server.start()
    lent_server.reset()
