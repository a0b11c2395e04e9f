"""Each store by its URL, fresh. A server that is missing skips its own tests alone, and says so."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.redis import RedisServer, redis_server

__all__ = ["postgres_server", "redis_server"]


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nobody has used yet."""
    own = f"lives_{uuid4().hex}"
    match request.param:
        case "redis":
            redis: RedisServer = request.getfixturevalue("redis_server")
            return f"{redis.url}?namespace={own}"
        case "postgres":
            postgres: PostgresServer = request.getfixturevalue("postgres_server")
            return f"{postgres.url}?schema={own}"
        case _:
            return f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"
