"""The stores that the model is held against, and how each is opened anew.

A driver joins with one line in `SUBJECTS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.memory import MemoryDriver
from tenure.drivers.postgres import PostgresDriver
from tenure.drivers.redis import RedisDriver
from tenure.drivers.sqlite import SqliteDriver
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

__all__ = ["SUBJECTS", "Opening", "Subject", "lasting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One fresh, empty store. `connect` makes an unopened driver of it, each time another one.

    `lasts` says whether the jobs outlive the `close` of the driver.
    """

    connect: Callable[[], Driver]
    lasts: bool = True


Opening = Callable[[], Subject]  # gives another fresh store each time


def lasting(driver: Driver) -> Subject:
    """A store that is the driver itself: closed and opened, it is still there."""
    return Subject(connect=lambda: driver)


def _memory(request: pytest.FixtureRequest) -> Opening:
    return lambda: lasting(MemoryDriver(clock=SystemClock()))


def _sqlite_in_a_file(request: pytest.FixtureRequest) -> Opening:
    folder: Path = request.getfixturevalue("tmp_path")
    numbers = count()

    def fresh() -> Subject:
        path = str(folder / f"{next(numbers)}.db")
        # What a commit survives is not asked here, so the disk need not be waited for.
        return Subject(
            connect=lambda: SqliteDriver(path, synchronous="NORMAL", clock=SystemClock())
        )

    return fresh


def _sqlite_in_memory(request: pytest.FixtureRequest) -> Opening:
    return lambda: Subject(
        connect=lambda: SqliteDriver(":memory:", clock=SystemClock()), lasts=False
    )


def _redis(request: pytest.FixtureRequest) -> Opening:
    server: RedisServer = request.getfixturevalue("redis_server")

    def fresh() -> Subject:
        namespace = f"model-{uuid4().hex}"
        return Subject(
            connect=lambda: RedisDriver(server.url, namespace=namespace, clock=SystemClock())
        )

    return fresh


def _postgres(request: pytest.FixtureRequest) -> Opening:
    server: PostgresServer = request.getfixturevalue("postgres_server")

    def fresh() -> Subject:
        schema = f"model_{uuid4().hex}"
        return Subject(
            connect=lambda: PostgresDriver(server.url, schema=schema, clock=SystemClock())
        )

    return fresh


SUBJECTS: Mapping[str, Callable[[pytest.FixtureRequest], Opening]] = {
    "memory": _memory,
    "sqlite_in_a_file": _sqlite_in_a_file,
    "sqlite_in_memory": _sqlite_in_memory,
    "redis": _redis,
    "postgres": _postgres,
}
