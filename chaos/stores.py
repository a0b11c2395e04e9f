"""The stores that are put under load: a file, or a durable server of our own."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests.servers import postgres, redis

__all__ = ["SERVERS", "STORES", "Server", "running_server", "running_store"]

SERVERS = ("redis", "postgres")
STORES = ("sqlite", *SERVERS)


class Server(Protocol):
    """A server that can be killed and started again on the same port and the same files."""

    @property
    def url(self) -> str: ...

    def kill(self) -> None: ...

    def start(self) -> None: ...


@contextmanager
def running_store(store: str, folder: Path) -> Generator[str]:
    """The URL of an empty store."""
    if store == "sqlite":
        yield f"sqlite:///{folder / 'jobs.db'}"
        return
    with running_server(store, folder) as server:
        yield server.url


@contextmanager
def running_server(store: str, folder: Path) -> Generator[Server]:
    """A server that is ended afterwards. It writes to the disk before it answers.

    That is PostgreSQL's default; Redis has to be told.
    """
    try:
        if store == "postgres":
            with postgres.running(durable=True) as server:
                yield server
        else:
            settings = ("--appendonly", "yes", "--appendfsync", "always")
            with redis.running(folder / "redis", *settings) as server:
                yield server
    except (pytest.fail.Exception, pytest.skip.Exception) as error:
        # The servers are those of the tests, and that is how they say that there is none.
        raise SystemExit(f"no {store} server: {error}") from None
