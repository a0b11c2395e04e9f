"""The stores that are put under load: a file, or a durable server of our own."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests.servers import postgres, redis
from tests.servers.faketime import runs_under

__all__ = ["STORES", "Server", "running_server", "settable"]

STORES = ("sqlite", "redis", "postgres")


class Server(Protocol):
    """A server that can be killed and started again on the same port and the same files."""

    @property
    def url(self) -> str: ...

    @property
    def answers(self) -> bool: ...

    port: int

    def kill(self) -> None: ...

    def start(self) -> None: ...


@contextmanager
def running_server(store: str, folder: Path, environment: Mapping[str, str]) -> Generator[Server]:
    """A server with its files there, ended afterwards. It writes to the disk before it answers.

    That is PostgreSQL's default; Redis has to be told.
    """
    try:
        if store == "postgres":
            with postgres.running(durable=True, folder=folder, environment=environment) as server:
                yield server
        else:
            settings = ("--appendonly", "yes", "--appendfsync", "always")
            program = _program(environment) if environment else None
            with redis.running(folder, *settings, program=program, environment=environment) as it:
                yield it
    except (pytest.fail.Exception, pytest.skip.Exception) as error:
        # The servers are those of the tests, and that is how they say that there is none.
        raise SystemExit(f"no {store} server: {error}") from None


def settable(store: str, environment: Mapping[str, str]) -> bool:
    """Whether the clock of such a server can be set."""
    return store != "redis" or _program(environment) is not None


def _program(environment: Mapping[str, str]) -> str | None:
    """The first Redis that starts so: one whose allocator is a shared library may not."""
    return next((each for each in redis.binaries() if runs_under(environment, each)), None)
