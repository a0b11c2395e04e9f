"""An empty store for each test: on a file, and on each kind of store."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.edge.cli.programs import APP, Start, starting
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.redis import RedisServer, redis_server

__all__ = ["postgres_server", "redis_server"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def each_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A server that is missing skips its own tests alone, and says so."""
    own = f"cli_{uuid4().hex}"
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis_server")
        return f"{redis.url}?namespace={own}"
    if request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        return f"{postgres.url}?schema={own}"
    return f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an app, `shop:app`."""
    (tmp_path / "shop.py").write_text(APP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def start(folder: Path, url: str) -> Iterator[Start]:
    """Starts `tenure worker` there; what it has started is ended with the test."""
    with starting(folder, url) as start:
        yield start
