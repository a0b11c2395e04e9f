"""`tenure doctor`: warnings end with 0, errors with 7, and what is not there is not made."""

import os
import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import tenure
from tenure.drivers.findings import Finding, skew
from tenure.drivers.postgres.examination import ServerFacts
from tenure.drivers.postgres.examination import judged as judged_database
from tenure.drivers.redis.examination import judged as judged_server
from tenure.drivers.sqlite.examination import filesystem_finding, filesystem_of, version_finding
from tests.edge.cli.running import call, lines, run
from tests.edge.cli.test_administration import on


def levels(findings: list[Finding]) -> dict[str, str]:
    return {finding.about: finding.level for finding in findings}


def found(url: str) -> dict[str, dict[str, str]]:
    """The findings by what they are about; the last of each."""
    return {f["about"]: f for f in call("doctor", "--json", url=url).json["findings"]}


# --- on real stores -------------------------------------------------------------------------------


def test_each_store_is_looked_at(each_url: str) -> None:
    call("enqueue", "quick", url=each_url)
    ran = call("doctor", "--json", url=each_url)
    about = {finding["about"]: finding for finding in ran.json["findings"]}
    assert all(f["remedy"] for f in ran.json["findings"] if f["level"] != "ok")
    assert "no worker serves it" in about["queues"]["message"]
    assert about["waiting"]["level"] == "ok"
    if each_url.startswith("redis"):  # that of the tests keeps nothing on disk
        assert about["persistence"]["level"] == "error"
        assert ran.code == 7
        assert "nothing is kept on disk" in lines(ran)[0]
    else:
        assert ran.json["healthy"] is (ran.code == 0)


def test_a_look_makes_no_file(url: str, tmp_path: Path) -> None:
    ran = run("doctor", url=url)
    assert ran.code == 0, ran.err
    assert "there is no" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_7_a_file_without_a_write_ahead_log(url: str, tmp_path: Path) -> None:
    file = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    file.execute("CREATE TABLE other (x)")
    file.close()
    ran = run("doctor", url=url)
    assert ran.code == 7
    assert ran.err.splitlines()[-2].startswith("error: the file has journal mode 'delete'")


def test_a_file_that_others_may_read_is_warned_of(url: str, tmp_path: Path) -> None:
    call("enqueue", "quick", url=url)
    file = tmp_path / "jobs.db"
    os.chmod(file, stat.S_IRUSR | stat.S_IWUSR)
    assert found(url)["permissions"]["level"] == "ok"
    os.chmod(file, 0o644)
    assert found(url)["permissions"]["level"] == "warning"


def test_a_job_that_has_long_been_due_and_workers_of_two_versions_are_warned_of(url: str) -> None:
    now = datetime.now(UTC)

    async def arrange(queue: tenure.Queue) -> None:
        await queue.dispatch("quick", at=now - timedelta(hours=3))
        driver = await queue.driver()
        for version in ("0.1", "0.2"):
            info = tenure.WorkerInfo(
                id=version,
                name=None,
                host="here",
                pid=1,
                queues=("default",),
                concurrency=1,
                running=0,
                started_at=now,
                seen_at=now,
                version=version,
            )
            await driver.report(info, 60.0)

    on(url, arrange)
    about = found(url)
    assert "due for 3.0 h" in about["waiting"]["message"]
    assert about["workers"]["message"] == "workers of different versions: 0.1, 0.2"
    assert "queues" not in about


def test_jobs_that_an_app_has_no_handler_for_are_warned_of(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import tenure\nworker = tenure.Worker(tenure.connect('memory://'))\n"
        "worker.register('quick', print)\n",
        encoding="utf-8",
    )
    call("enqueue", "quick", url=url)
    call("enqueue", "quikc", url=url)
    ran = run("doctor", "--app", "shop:worker", "--json", url=url, cwd=tmp_path)
    assert ran.code == 0
    told = [f["message"] for f in ran.json["findings"] if f["about"] == "handlers"]
    assert told == ["jobs named 'quikc' wait, and the app has no handler for them"]
    assert run("doctor", "--app", "shop:wroker", url=url, cwd=tmp_path).code == 4


# --- what facts mean ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "level"),
    [((3, 40, 1), "warning"), ((3, 51, 2), "warning"), ((3, 51, 3), "ok"), ((3, 52, 0), "ok")],
)
def test_the_versions_of_sqlite_with_the_fault_are_warned_of(
    version: tuple[int, ...], level: str
) -> None:
    assert version_finding(version).level == level


def test_the_file_system_is_that_of_the_nearest_mount() -> None:
    mounts = (
        "/dev/a / ext4 rw 0 0\nserver:/x /srv nfs4 rw 0 0\n/dev/b /srv/fast\\040disk xfs rw 0 0\n"
    )
    assert filesystem_of(Path("/home/me"), mounts) == "ext4"
    assert filesystem_of(Path("/srv/jobs"), mounts) == "nfs4"
    assert filesystem_of(Path("/srv/fast disk/jobs"), mounts) == "xfs"
    assert filesystem_of(Path("/srvother"), mounts) == "ext4"
    assert filesystem_finding("nfs4").level == "error"
    assert filesystem_finding("ext4").level == "ok"


@pytest.mark.parametrize(
    ("settings", "about", "level"),
    [
        ({"appendonly": "yes", "appendfsync": "always"}, "persistence", "ok"),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "persistence", "warning"),
        ({"appendonly": "no", "save": "60 1"}, "persistence", "warning"),
        ({"appendonly": "no", "save": ""}, "persistence", "error"),
        ({}, "persistence", "warning"),
        ({"maxmemory-policy": "allkeys-lru"}, "eviction", "error"),
        ({"maxmemory-policy": "volatile-lru"}, "eviction", "ok"),
        ({"maxmemory-policy": "noeviction"}, "eviction", "ok"),
    ],
)
def test_settings_of_redis_that_lose_jobs(settings: dict[str, str], about: str, level: str) -> None:
    assert levels([*judged_server({}, settings)])[about] == level


@pytest.mark.parametrize(
    ("facts", "about", "level"),
    [
        ({"used_memory": "95", "maxmemory": "100"}, "memory", "warning"),
        ({"aof_last_write_status": "err"}, "disk", "error"),
        ({"role": "slave"}, "role", "error"),
        ({"redis_version": "7.2"}, "server", "ok"),
    ],
)
def test_facts_of_redis(facts: dict[str, str], about: str, level: str) -> None:
    assert levels([*judged_server(facts, {})])[about] == level


GOOD = ServerFacts(
    version=160_004,
    fsync="on",
    synchronous_commit="on",
    full_page_writes="on",
    standby=False,
    connections=10,
    most=100,
    open_for=None,
    open_by=None,
)


@pytest.mark.parametrize(
    ("changed", "about", "level"),
    [
        ({}, "durability", "ok"),
        ({"version": 140_011}, "server", "error"),
        ({"fsync": "off"}, "durability", "error"),
        ({"synchronous_commit": "off"}, "durability", "warning"),
        ({"full_page_writes": "off"}, "durability", "warning"),
        ({"standby": True}, "role", "error"),
        ({"connections": 95}, "connections", "warning"),
        ({"open_for": 3600.0, "open_by": 7}, "transactions", "warning"),
    ],
)
def test_facts_of_postgres(changed: dict[str, Any], about: str, level: str) -> None:
    assert levels([*judged_database(replace(GOOD, **changed))])[about] == level


@pytest.mark.parametrize(
    ("seconds", "level"), [(0.2, "ok"), (-0.9, "ok"), (2, "warning"), (-2, "warning")]
)
def test_a_clock_that_differs_is_warned_of(seconds: float, level: str) -> None:
    assert skew(seconds).level == level
