"""The servers of this folder; what they warn of (nothing is kept on disk) is meant so here."""

import logging
from collections.abc import Iterator

import pytest

from tests.servers.redis import cluster_server, redis_cluster, redis_server

__all__ = ["cluster_server", "redis_cluster", "redis_server"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger = logging.getLogger("tenure.redis")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)
