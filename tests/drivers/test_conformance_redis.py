"""The conformance kit on a Redis server, and on a cluster of three."""

import asyncio
import logging
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.drivers.redis import RedisDriver
from tenure.testing.conformance import REPEATABLE, Check, conform, repeating
from tenure.testing.conformance.adapter import parametrize_checks, run_check
from tests.drivers.witnesses import opening
from tests.servers.redis import RedisServer, cluster_server, redis_cluster, redis_server

__all__ = ["cluster_server", "redis_cluster", "redis_server"]  # fixtures


@pytest.fixture(autouse=True)
def quiet() -> None:
    """The servers keep nothing on disk, as they should here."""
    logging.getLogger("tenure.redis").setLevel(logging.ERROR)


def driver(server: RedisServer) -> RedisDriver:
    """A store of its own in a namespace that nobody used."""
    return RedisDriver(server.url, namespace=f"kit-{uuid4().hex}", clock=SystemClock())


@parametrize_checks
def test_redis(check: Check, redis_server: RedisServer) -> None:
    run_check(check, opening(lambda: driver(redis_server)))


@parametrize_checks
def test_redis_cluster(check: Check, redis_cluster: list[RedisServer]) -> None:
    """Asks the first node, whichever has the slot of the namespace."""
    run_check(check, opening(lambda: driver(redis_cluster[0])))


def test_every_call_may_be_repeated(redis_server: RedisServer) -> None:
    """I14: the kit with every answer lost once."""
    report = asyncio.run(conform(repeating(opening(lambda: driver(redis_server))), REPEATABLE))
    report.raise_for_failures()
