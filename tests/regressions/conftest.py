"""The stores of the recipes. A server that is missing skips its own tests alone, and says so."""

import logging
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.process.conftest import each_stage, stage
from tests.regressions.sites import Opening, live_site, still_site
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.redis import RedisServer, redis_server

__all__ = ["each_stage", "postgres_server", "redis_server", "stage"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The server keeps nothing on disk, as it should here."""
    logger = logging.getLogger("tenure.redis")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def open_site(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """Opens the site, a fresh store on each kind."""
    own = f"site_{uuid4().hex}"
    match request.param:
        case "redis":
            redis: RedisServer = request.getfixturevalue("redis_server")
            return lambda: live_site(f"{redis.url}?namespace={own}")
        case "postgres":
            postgres: PostgresServer = request.getfixturevalue("postgres_server")
            return lambda: live_site(f"{postgres.url}?schema={own}")
        case store:
            return lambda: still_site(store, tmp_path)
