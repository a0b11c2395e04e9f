"""`tenure bench`: figures of each store, and nothing left behind in it."""

import signal
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.cli.measures import Mismatch, bulk, drain
from tenure.clock import SystemClock
from tenure.drivers.spare import removed, spare
from tests.edge.cli.programs import Program
from tests.edge.cli.running import call, lines, run
from tests.process.waiting import wait_until
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer, cluster_server, redis_cluster

__all__ = ["cluster_server", "redis_cluster"]

FEW = ("--jobs", "60", "--concurrency", "4")
NAMES = [
    "dispatch, one by one",
    "dispatch, in bulk",
    "drain, 4 slots",
    "pick-up, median",
    "pick-up, 95 %",
]


def keys(server: RedisServer) -> set[bytes]:
    with server.client() as client:
        return set(client.keys("*"))


def schemas(server: PostgresServer) -> set[str]:
    return {row[0] for row in server.ask("SELECT nspname FROM pg_namespace")}


def there(request: pytest.FixtureRequest, url: str) -> set[Any]:
    """All that the store of a URL lies among."""
    if url.startswith("redis"):
        return set(keys(request.getfixturevalue("redis_server")))
    if url.startswith("postgres"):
        return set(schemas(request.getfixturevalue("postgres_server")))
    folder = Path(url.removeprefix("sqlite:///").partition("?")[0]).parent
    return {path.name for path in folder.rglob("*")}


def test_it_measures_beside_the_store_and_leaves_nothing_behind(
    request: pytest.FixtureRequest, each_url: str
) -> None:
    call("enqueue", "greet", url=each_url)
    before = there(request, each_url)
    ran = call("bench", *FEW, "--json", url=each_url)
    assert (ran.code, ran.err) == (0, "")
    report = ran.json
    assert [measure["name"] for measure in report["measures"]] == NAMES
    assert all(measure["figure"] > 0 for measure in report["measures"])
    assert [measure["jobs"] for measure in report["measures"]] == [60, 60, 60, 100, 100]
    assert report["durability"]
    assert report["store"].split()[0] in ("SQLite", "Redis", "Valkey", "PostgreSQL")
    assert there(request, each_url) == before
    counts = call("stats", "--json", url=each_url).json["counts"]
    assert counts["pending"] == 1
    assert counts["completed"] == 0


def test_people_get_a_table_with_the_durability_beside(url: str) -> None:
    ran = call("bench", *FEW, url=url)
    assert ran.code == 0
    head, *rows = ran.out.splitlines()
    assert head.split() == ["MEASURE", "FIGURE", "UNIT", "JOBS", "DURABILITY"]
    assert all(row.endswith("synchronous=NORMAL") for row in rows)
    assert "CPUs, SQLite" in ran.err


def test_without_a_store_it_makes_a_file_in_the_working_directory(tmp_path: Path) -> None:
    ran = run("bench", *FEW, cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "synchronous=FULL" in ran.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["memory://", "sqlite:///:memory:"])
def test_a_store_in_memory_has_figures_as_well(url: str) -> None:
    ran = call("bench", *FEW, "--json", url=url)
    assert (ran.code, ran.json["durability"]) == (0, "none")


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, url: str) -> None:
    program = Program(tmp_path, url, "bench", "--jobs", "1000000")
    try:
        wait_until(lambda: any(tmp_path.glob(".tenure_bench_*/jobs.db")), lambda: program.stderr)
        program.send(signal.SIGINT)
        assert program.wait() == 130
    finally:
        program.close()
    assert "Traceback" not in program.stderr
    assert list(tmp_path.glob(".tenure*")) == []


@pytest.mark.parametrize(
    ("url", "code", "cause"),
    [
        ("redis://127.0.0.1:1", 3, "127.0.0.1:1"),
        ("sqlite:////nowhere/at/all/jobs.db", 1, "no file can be made"),
        ("mysql://localhost", 2, "must start with"),
    ],
)
def test_a_store_that_cannot_be_had(url: str, code: int, cause: str) -> None:
    ran = run("bench", *FEW, url=url)
    assert ran.code == code
    assert cause in lines(ran)[0]


async def test_no_figure_is_given_where_the_store_has_other_jobs() -> None:
    async with tenure.connect("memory://") as queue:
        await queue.dispatch("tenure.bench")
        with pytest.raises(Mismatch, match="2 dispatched"):
            await bulk(queue, 2, lambda _: None)


async def test_a_drain_counts_what_the_store_has_recorded() -> None:
    async with tenure.connect("memory://") as queue:
        await bulk(queue, 5, lambda _: None)
        measure = await drain(queue, 5, 2, lambda _: None)
        assert (measure.jobs, measure.unit) == (5, "jobs/s")
        assert (await queue.counts()).completed == 5


async def test_a_spare_store_in_a_cluster_is_removed(redis_cluster: list[RedisServer]) -> None:
    url = redis_cluster[0].url
    async with spare(f"{url}?namespace=shop", SystemClock()) as own:
        async with tenure.connect(own.url) as queue:
            await queue.dispatch_many([tenure.Call("greet") for _ in range(3000)])
        assert any(keys(node) for node in redis_cluster)
    assert not any(keys(node) for node in redis_cluster)


async def test_what_a_server_does_not_let_us_remove_is_named(redis_server: RedisServer) -> None:
    url = redis_server.url.replace("redis://", "redis://limited:secret@")
    with redis_server.client() as client:
        client.execute_command(
            "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-scan"
        )
    used: list[str] = []

    async def use() -> None:
        async with spare(url, SystemClock()) as own, tenure.connect(own.url) as queue:
            used.append(own.url)
            await queue.dispatch("greet")

    try:
        with pytest.raises(tenure.StoreError, match="could not be removed, and is left") as told:
            await use()
        assert used[0].rpartition("namespace=")[2] in str(told.value)
    finally:
        with redis_server.client() as client:
            client.acl_deluser("limited")
        await removed(used[0].replace("limited:secret@", ""), SystemClock())


async def test_only_the_named_namespace_is_removed(redis_server: RedisServer) -> None:
    """Also where its name has characters that mean something in a pattern."""
    urls = [f"{redis_server.url}?namespace={name}" for name in ("a%5Bb%5D%2A", "ab", "a[b]*x")]
    for url in urls:
        async with tenure.connect(url) as queue:
            await queue.dispatch("greet")
    before = keys(redis_server)
    await removed(urls[0], SystemClock())
    gone = before - keys(redis_server)
    assert gone
    assert all(key.startswith(b"{a[b]*}:") for key in gone)
    for url in urls[1:]:
        await removed(url, SystemClock())
    assert not [key for key in keys(redis_server) if key.startswith(b"{a")]
