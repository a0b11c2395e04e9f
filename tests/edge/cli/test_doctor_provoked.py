"""Each trouble that `tenure doctor` knows, where it can be made for real: on stores of our own."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.drivers.examinations import examined
from tenure.drivers.findings import Finding
from tenure.drivers.sqlite.examination import examine
from tests.edge.cli.running import call
from tests.servers.pgbouncer import PgBouncer, pgbouncer
from tests.servers.places import account, own_folder
from tests.servers.postgres import PostgresServer
from tests.servers.postgres import running as running_postgres
from tests.servers.redis import RedisServer, running

__all__ = ["pgbouncer"]


class Ahead(SystemClock):
    """This machine's clock, two hours ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=2)


def about(findings: list[Finding], what: str) -> list[tuple[str, str]]:
    """Level and message of each finding."""
    return [(found.level, found.message) for found in findings if found.about == what]


async def look(url: str) -> list[Finding]:
    return list(await examined(url, SystemClock()))


@pytest.mark.parametrize("server", ["redis_server", "postgres_server"])
async def test_a_clock_that_is_not_that_of_the_store(
    server: str, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(server).url
    assert about(await look(url), "clock") == [("ok", "within 1 s of the store's")]
    ((level, message),) = about(list(await examined(url, Ahead())), "clock")
    assert level == "warning"
    assert float(message.split()[3]) == pytest.approx(7200, abs=60)
    assert message.endswith("s ahead of the store")


# --- a file ---------------------------------------------------------------------------------------


def test_a_file_on_a_network(url: str, tmp_path: Path) -> None:
    """As the system would list it."""
    call("enqueue", "quick", url=url)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nserver:/srv {tmp_path} nfs4 rw 0 0\n", "utf-8")
    found = list(examine(str(tmp_path / "jobs.db"), mounts=mounts))
    ((level, message),) = about(found, "file system")
    assert level == "error"
    assert "on a network (nfs4)" in message


@pytest.fixture
def lent() -> Iterator[Path]:
    """A folder that another account can enter."""
    with own_folder("doctor", account()) as folder:
        yield folder


def test_a_file_that_this_user_may_not_write(lent: Path) -> None:
    """Root may write everything, so it looks as somebody else, in a child."""
    file = lent / "jobs.db"
    assert call("enqueue", "quick", url=f"sqlite:///{file}").code == 0
    file.chmod(0o444)
    lent.chmod(0o555)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # nothing but a look, and no way back into the test
        try:
            owner = account()
            if owner.group is not None:
                os.setgroups([])
                os.setgid(owner.group)
            if owner.user is not None:
                os.setuid(owner.user)
            seen = next(f for f in examine(str(file)) if f.about == "permissions")
            os.write(writing, f"{seen.level}: {seen.message}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode()
    os.waitpid(child, 0)
    lent.chmod(0o755)
    assert told == f"error: this user may not read and write {file}, {lent}"


def test_a_job_that_has_waited_longest_is_found_among_many(url: str) -> None:
    """However many newer ones wait."""
    call("enqueue", "old", "--at", "2020-01-01T00:00Z", "--queue", "mail", url=url)
    for _ in range(3):
        call("enqueue", "new", url=url)
    found = call("doctor", "--json", url=url).json["findings"]
    (waiting,) = [finding for finding in found if finding["about"] == "waiting"]
    assert waiting["level"] == "warning"
    hours = float(waiting["message"].split()[-2].replace(",", ""))
    assert hours > 24 * 365


# --- servers --------------------------------------------------------------------------------------


async def test_a_redis_that_keeps_a_second_less_and_evicts(tmp_path: Path) -> None:
    options = ("--appendonly", "yes", "--appendfsync", "everysec")
    with running(tmp_path, *options, "--maxmemory-policy", "allkeys-lru") as server:
        found = await look(server.url)
        ((level, message),) = about(found, "persistence")
        assert (level, "appendfsync is everysec" in message) == ("warning", True)
        ((level, message),) = about(found, "eviction")
        assert (level, "allkeys-lru" in message) == ("error", True)
        with server.client() as client:
            client.config_set("appendfsync", "always")
            client.config_set("maxmemory-policy", "noeviction")
        found = await look(server.url)
        assert about(found, "persistence") == [("ok", "appendonly, appendfsync always")]
        assert about(found, "eviction") == [("ok", "noeviction")]


async def test_a_redis_that_is_nearly_full_and_one_that_is_a_replica(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    with running(tmp_path) as server, server.client() as client:
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", str(int(used / 0.95)))
        ((level, message),) = about(await look(server.url), "memory")
        assert (level, message.endswith("% is used")) == ("warning", True)
        client.config_set("maxmemory", "0")
        client.replicaof("127.0.0.1", redis_server.port)
        assert about(await look(server.url), "role") == [("error", "this server is a replica")]


async def test_a_postgres_that_may_lose_the_last_moment(postgres_server: PostgresServer) -> None:
    """That of the tests has fsync off, which is worse; another one keeps all until it is told."""
    ((level, message), _) = about(await look(postgres_server.url), "durability")
    assert (level, message.startswith("fsync is off")) == ("error", True)
    with running_postgres(durable=True) as server:
        ((level, _),) = about(await look(server.url), "durability")
        assert level == "ok"
        server.ask("ALTER ROLE postgres SET synchronous_commit = off")
        ((level, message),) = about(await look(server.url), "durability")
        assert (level, message.startswith("synchronous_commit is off")) == ("warning", True)


async def test_a_pooler_in_between(pgbouncer: PgBouncer, postgres_server: PostgresServer) -> None:
    assert about(await look(postgres_server.url), "pooler") == [("ok", "none")]
    ((level, message),) = about(await look(pgbouncer.url), "pooler")
    assert (level, "through a pooler" in message) == ("warning", True)


def test_a_store_behind_a_pooler_is_looked_at(pgbouncer: PgBouncer) -> None:
    url = f"{pgbouncer.url}?schema=doctor_{uuid4().hex}"
    assert call("enqueue", "quick", url=url).code == 0
    found = call("doctor", "--json", url=url).json["findings"]
    assert {"pooler", "queues", "schema", "waiting"} <= {finding["about"] for finding in found}
