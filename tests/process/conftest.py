"""A stage for each test; whatever it started is gone afterwards."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.process.stage import Stage
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.redis import RedisServer, redis_server

__all__ = ["postgres_server", "redis_server"]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    try:
        yield stage
    finally:
        stage.close()


@pytest.fixture(params=["sqlite", "postgres"])
def seeing_stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A stage on each store that can see the end of a worker's process."""
    yield from _stage(request, tmp_path)


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def each_stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A stage on each store. A server that is missing skips its own tests alone, and says so."""
    yield from _stage(request, tmp_path)


def _stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    own = f"stage_{uuid4().hex}"
    url = None
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis_server")
        url = f"{redis.url}?namespace={own}"
    elif request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        url = f"{postgres.url}?schema={own}"
    stage = Stage(tmp_path, url)
    try:
        yield stage
    finally:
        stage.close()
