"""The fixtures for pytest, in a project of somebody else's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenure
from tenure.testing.stores import Stores
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.redis import RedisServer, redis_server

__all__ = ["postgres_server", "redis_server"]  # fixtures


def run(folder: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a test module with pytest as it is installed, outside of this project."""
    (folder / "test_project.py").write_text(source, encoding="utf-8")
    names = ("TENURE_TEST_REDIS_URL", "TENURE_TEST_POSTGRES_URL", "TENURE_TEST_REQUIRE")
    plain = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-W", "error"],
        cwd=folder,
        env=plain | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_a_project_that_asks_for_nothing_is_given_nothing(tmp_path: Path) -> None:
    """No fixture is used by itself, and neither worker, nor driver, nor bench is imported."""
    ran = run(
        tmp_path,
        """
import sys

def test_nothing(request):
    assert not [name for name in request.fixturenames if name.startswith("tenure")]
    for name in ("tenure.worker", "tenure.drivers.memory", "tenure.testing.bench", "sqlite3"):
        assert name not in sys.modules
""",
    )
    assert ran.returncode == 0, ran.stdout


def test_the_fixtures_share_one_bench_for_each_test(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
import asyncio
import pytest
import tenure

tasks = tenure.Tasks()

@tasks.task
async def double(number: int) -> int:
    return 2 * number

@pytest.fixture
def tenure_tasks():
    return [tasks]

def test_one(tenure_bench, tenure_queue, tenure_clock):
    assert tasks.queue is tenure_queue is tenure_bench.queue
    assert tenure_clock is tenure_bench.clock
    assert tenure_bench.sync.process(double, 21).result == 42

def test_another(tenure_bench):
    assert list(tenure_bench.dispatched) == []
    async def test():
        await double.enqueue(4)
        return await tenure_bench.drain()
    assert [job.result for job in asyncio.run(test())] == [8]

def test_after_it():
    assert tasks.queue is None

def test_a_store(tenure_store):
    first, second = tenure_store("sqlite"), tenure_store("sqlite")
    with tenure.connect(first).sync as queue, tenure.connect(second).sync as other:
        queue.dispatch("a")
        assert (queue.counts().pending, other.counts().pending) == (1, 0)
    with pytest.raises(tenure.InvalidConfiguration):
        tenure_store("mysql")
""",
    )
    assert "4 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_that_is_not_named_skips_its_tests_and_says_so(kind: str, tmp_path: Path) -> None:
    """Where all are required it fails instead."""
    source = f"def test(tenure_store): tenure_store({kind!r})"
    skipped = run(tmp_path, source)
    assert f"TENURE_TEST_{kind.upper()}_URL is not set" in skipped.stdout
    assert "1 skipped" in skipped.stdout
    failed = run(tmp_path, source, TENURE_TEST_REQUIRE="all")
    assert "1 failed" in failed.stdout


def test_a_namespace_on_redis_is_gone_after_the_test(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_TEST_REDIS_URL", redis_server.url)
    with Stores(tmp_path) as stores:
        url = stores.make("redis")
        namespace = url.partition("namespace=")[2]
        with tenure.connect(url).sync as queue:
            queue.dispatch("send")
        with redis_server.client() as client:
            assert client.keys(f"*{namespace}*")
    with redis_server.client() as client:
        assert client.keys(f"*{namespace}*") == []


def test_a_schema_on_postgresql_is_gone_after_the_test(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_TEST_POSTGRES_URL", postgres_server.url)
    with Stores(tmp_path) as stores:
        url = stores.make("postgres")
        schema = url.partition("schema=")[2]
        with tenure.connect(url).sync as queue:
            queue.dispatch("send")
        found = f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'"
        assert postgres_server.ask(found) == [(1,)]
    assert postgres_server.ask(found) == [(0,)]
