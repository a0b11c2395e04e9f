"""Opening: what is checked and said; closing: what is left; forking: what is left alone."""

import asyncio
import logging
import multiprocessing
import os
from pathlib import Path

import pytest

from tenure.clock import SystemClock
from tenure.drivers.redis import RedisDriver, opening
from tenure.errors import InvalidConfiguration, SchemaMismatch, StoreError, StoreUnavailable
from tests.drivers.redis_extras.support import jobs, opened, until
from tests.servers.redis import RedisServer, running


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the driver warned of; a slow machine makes asyncio say something too."""
    ours = [record for record in caplog.records if record.name == "tenure.redis"]
    return [record.getMessage() for record in ours if record.levelno == logging.WARNING]


async def test_settings_that_can_lose_jobs_are_named_once(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="tenure.redis")
    with redis_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            async with opened(redis_server) as driver:
                await driver.open()
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    first, second = warnings(caplog)
    assert "evict" in first
    assert "noeviction" in first
    assert "on disk" in second


async def test_a_server_that_only_saves_now_and_then_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="tenure.redis")
    with running(tmp_path) as server:
        with server.client() as client:
            client.config_set("save", "3600 1")
        async with opened(server):
            pass
    (said,) = warnings(caplog)
    assert "since the last time" in said


async def test_a_durable_server_is_opened_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="tenure.redis")
    with running(tmp_path, "--appendonly", "yes") as server:
        async with opened(server):
            pass
    assert warnings(caplog) == []


async def test_a_server_that_tells_nothing_is_opened(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="tenure.redis")
    with redis_server.client() as client:
        rules = ("on", ">secret", "~{tell}:*", "+@all", "-config", "-info")
        client.execute_command("ACL", "SETUSER", "quiet", *rules)
    url = redis_server.url.replace("redis://", "redis://quiet:secret@")
    driver = RedisDriver(url, namespace="tell", clock=SystemClock())
    await driver.open()
    assert await driver.enqueue(jobs(1))
    await driver.close()
    assert warnings(caplog) == []
    assert any("does not tell" in record.getMessage() for record in caplog.records)
    other = RedisDriver(url, namespace="elsewhere", clock=SystemClock())
    with pytest.raises(StoreError, match="namespace") as caught:
        await other.open()
    assert "secret" not in str(caught.value)
    await other.close()


async def test_a_wrong_or_missing_password_is_named(tmp_path: Path) -> None:
    with running(tmp_path) as server, server.client() as client:
        client.config_set("requirepass", "secret")
        for user, answer in (("", "NOAUTH"), (":wrong@", "WRONGPASS")):
            url = server.url.replace("redis://", f"redis://{user}")
            driver = RedisDriver(url, clock=SystemClock())
            with pytest.raises(StoreUnavailable, match=f"{answer}.*password") as caught:
                await driver.open()
            assert not caught.value.ambiguous
            await driver.close()
        driver = RedisDriver(url.replace("wrong", "secret"), clock=SystemClock())
        await driver.open()
        await driver.close()


@pytest.mark.parametrize("found", [0, 99])
async def test_another_schema_is_refused(redis_server: RedisServer, found: int) -> None:
    with redis_server.client() as client:
        client.set("{schema-test}:schema", found)
    driver = RedisDriver(redis_server.url, namespace="schema-test", clock=SystemClock())
    with pytest.raises(SchemaMismatch) as caught:
        await driver.open()
    assert (caught.value.found, caught.value.expected) == (found, 1)
    await driver.close()


async def test_an_old_server_is_refused(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_LEAST", (99, 0))
    driver = RedisDriver(redis_server.url, clock=SystemClock())
    with pytest.raises(StoreError, match=r"expected Redis 6\.2 or later"):
        await driver.open()
    await driver.close()


async def test_closing_leaves_no_connection(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        before = len(client.client_list())
        async with opened(redis_server) as driver:
            await asyncio.gather(*(driver.counts() for _ in range(20)))
            assert len(client.client_list()) > before
        await until(lambda: len(client.client_list()) == before)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://localhost"},
        {"namespace": ""},
        {"namespace": "a}b"},
        {"namespace": "x" * 65},
        {"timeout": 0.0},
        {"connect_timeout": -1.0},
    ],
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    given: dict[str, object] = {"url": "redis://localhost", "clock": SystemClock(), **options}
    with pytest.raises(InvalidConfiguration):
        RedisDriver(**given)  # type: ignore[arg-type]  # that is the point


async def test_a_unix_socket_will_do(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with running(tmp_path, "--unixsocket", str(path)):
        driver = RedisDriver(f"unix://{path}", clock=SystemClock())
        await driver.open()
        assert await driver.enqueue(jobs(1))
        await driver.close()


def _in_child(driver: RedisDriver) -> None:
    """What a forked child does with a driver that its parent has opened."""

    async def main() -> None:
        await driver.enqueue(jobs(1, "child"))
        await driver.close()

    asyncio.run(main())
    os._exit(0)


async def test_a_child_leaves_the_connections_of_its_parent_alone(
    redis_server: RedisServer,
) -> None:
    async with opened(redis_server) as driver:
        await driver.enqueue(jobs(1))
        child = multiprocessing.get_context("fork").Process(target=_in_child, args=(driver,))
        child.start()
        await asyncio.to_thread(child.join, 30)
        assert child.exitcode == 0
        with redis_server.client() as client:
            before = client.info("stats")["total_connections_received"]
            assert (await driver.counts()).pending == 2
            assert client.info("stats")["total_connections_received"] == before
